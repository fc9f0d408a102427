"""Units and scales by their names, in many languages, with or without a space before them."""

from __future__ import annotations

import re

from privategpt.grounding.lexicon import UNSPACED

_UNIT_NAMES = {
    "%": "% percent pct prozent procent prósent pourcent porcento percentuale パーセント",
    "°C": "°c ℃ celsius",
    "°F": "°f ℉ fahrenheit",
    "km": "km kilometre kilometres kilometer kilometers kilómetros chilometri quilômetros",
    "m": "m metre metres meter meters metros metri mètres",
    "cm": "cm centimetre centimetres centimeter centimeters zentimeter",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "mi": "mi mile miles meilen",
    "ft": "ft foot feet",
    "in": "inch inches",
    "kg": "kg kilogram kilograms kilogramm kilo kilos",
    "g": "g gram grams gramm grammes",
    "mg": "mg milligram milligrams milligramm",
    "µg": "µg μg mcg microgram micrograms",
    "t": "tonne tonnes tons ton tonnen",
    "lb": "lb lbs pound pounds",
    "l": "l litre litres liter liters",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "s": "s sec second seconds sekunde sekunden secondes segundos",
    "min": "min minute minutes minuten minutos minuti",
    "h": "h hr hrs hour hours stunde stunden heures horas ore uur",
    "d": "day days tag tage tagen jours jour días dias giorni dagen dagar daga",
    "week": "week weeks woche wochen semaines semanas settimane weken vikur",
    "month": "month months monat monate monaten mois meses mesi maanden mánuði mánuðir",
    "year": "year years yr yrs jahr jahre jahren ans années años anos anni jaar ár ára",
    "$": "$ usd dollar dollars us$",
    "€": "€ eur euro euros",
    "£": "£ gbp",
    "¥": "¥ jpy yen 円",
    "W": "w watt watts",
    "kW": "kw kilowatt kilowatts",
    "V": "v volt volts",
    "Hz": "hz hertz",
    "MB": "mb megabyte megabytes",
    "GB": "gb gigabyte gigabytes",
    "kB": "kb kilobyte kilobytes",
}
UNITS = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
_UNSPACED_UNIT_NAMES = {
    "°C": "摄氏度 攝氏度",
    "km": "公里 千米 キロメートル 킬로미터",
    "mi": "英里 マイル 마일",
    "m": "米 公尺 メートル 미터",
    "cm": "厘米 公分 センチメートル センチ",
    "mm": "毫米 公厘 ミリメートル ミリ",
    "kg": "公斤 千克 キログラム キロ 킬로그램",
    "g": "克 グラム",
    "t": "吨 噸 トン",
    "l": "升 リットル",
    "ml": "毫升 ミリリットル",
    "s": "秒 초",
    "min": "分钟 分鐘 分間 分 분",
    "h": "小时 小時 时间 時間 시간",
    "d": "天 日間 일간",
    "week": "周 週 星期",
    "month": "个月 個月 か月 ヶ月 カ月 개월",
    "year": "年",
    "$": "美元 美金 ドル 달러",
    "€": "欧元 歐元 ユーロ 유로",
    "£": "英镑 英鎊 ポンド",
    "¥": "日元 日圓 円",
    "%": "パーセント 퍼센트",
}
_UNSPACED_UNITS = {
    name: unit for unit, names in _UNSPACED_UNIT_NAMES.items() for name in names.split()
}
_UNSPACED_UNIT = re.compile("|".join(sorted(_UNSPACED_UNITS, key=len, reverse=True)))
JOINED = f"{UNSPACED}\uac00-\ud7af"
JOINED_WORD = re.compile(rf"[{JOINED}]")
"""Behind a number of theirs a word may go on beyond what is counted."""

SCALES = {
    "thousand": 1e3, "k": 1e3, "tausend": 1e3, "mille": 1e3, "mil": 1e3, "duizend": 1e3,
    "þúsund": 1e3, "千": 1e3,
    "万": 1e4, "萬": 1e4,
    "million": 1e6, "millions": 1e6, "mio": 1e6, "millionen": 1e6, "millones": 1e6, "milhões": 1e6,
    "milioni": 1e6, "miljoen": 1e6, "milljón": 1e6, "milljónir": 1e6,
    "億": 1e8, "亿": 1e8,
    "billion": 1e9, "billions": 1e9, "bn": 1e9, "mrd": 1e9, "milliarde": 1e9, "milliarden": 1e9,
    "milliards": 1e9, "miliardi": 1e9, "miljard": 1e9,
    "trillion": 1e12,
}  # fmt: skip


def unit_and_scale(after: str | None, second: str | None) -> tuple[str, float]:
    """What the words behind a number make of it: its unit ("" for none) and its factor."""
    first = (after or "").replace(" ", "").casefold()
    if JOINED_WORD.match(first):
        scale = SCALES.get(first[0], 1)
        unit = _UNSPACED_UNIT.match(first, int(first[0] in SCALES))
        return _UNSPACED_UNITS[unit[0]] if unit else "", scale
    if first in SCALES:
        return UNITS.get((second or "").casefold(), ""), SCALES[first]
    if first in ("per", "pro", "pour", "por") and (second or "").casefold() in (
        "cent", "ciento", "cento", "cent.",
    ):  # fmt: skip
        return "%", 1
    return UNITS.get(first, ""), 1
