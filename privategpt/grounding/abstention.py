"""What is said where the documents have no answer, in the question's language."""

from __future__ import annotations

import re
from collections import Counter

from privategpt.grounding.lexicon import composed, words

SENTENCES = {
    "en": "I could not find an answer to this in the documents.",
    "de": "Dazu habe ich in den Dokumenten keine Antwort gefunden.",
    "fr": "Je n’ai pas trouvé de réponse à cette question dans les documents.",
    "es": "No he encontrado una respuesta a esta pregunta en los documentos.",
    "pt": "Não encontrei uma resposta a esta pergunta nos documentos.",
    "it": "Non ho trovato una risposta a questa domanda nei documenti.",
    "nl": "Ik heb hierop geen antwoord gevonden in de documenten.",
    "is": "Ég fann ekki svar við þessu í skjölunum.",
    "zh": "我在文档中没有找到这个问题的答案。",
    "ja": "この質問に対する答えは文書の中に見つかりませんでした。",
}
"""By ISO 639-1 code; every other language gets English."""

_KANA = re.compile(r"[\u3040-\u30ff]")
_IDEOGRAPHS = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile(r"[\u0370-\u1fff\uac00-\ud7af]")

_FREQUENT = {
    "en": words(
        "the of and to in is that for it was on are as with his they at be this have from or had "
        "by what when where which who why how does did do can could should would will there their "
        "an a many much tell me about explain describe"
    ),
    "de": words(
        "der die das und ist in den von zu mit sich des auf für nicht ein eine als auch es an dem "
        "wer was wann wo warum wie welche welcher welches wieviel viele wurde werden wird kann "
        "gibt hat haben sind bei nach über ich mir erkläre beschreibe"
    ),
    "fr": words(
        "le la les de des du un une et est en que qui dans pour par sur avec pas plus au aux ce "
        "cette quel quelle quels quelles quand où pourquoi comment combien quoi sont a été il elle "
        "l d qu je tu vous nous y"
    ),
    "es": words(
        "el la los las de del un una y es en que por para con no se al lo como más qué quién cuál "
        "cuáles cuándo dónde cuánto cuántos cuántas cómo son fue era hay su sus está tiene puede"
    ),
    "pt": words(
        "o a os as de do da dos das um uma e é em no na nos nas que por para com não se ao à como "
        "mais qual quais quem quando onde quanto quantos quantas são foi era há seu sua está tem "
        "pode você"
    ),
    "it": words(
        "il lo la i gli le di del della dei delle un una e è in nel nella che per con non si al "
        "alla come più quale quali chi quando dove quanto quanti quante cosa perché sono era ha c "
        "l dell è stato può"
    ),
    "nl": words(
        "de het een en van is in op te dat die voor met zijn niet aan er om als ook bij naar wie "
        "wat wanneer waar waarom hoe welke welk hoeveel wordt werd worden kan heeft hebben deze "
        "dit ik"
    ),
    "is": words(
        "og að í á er sem til um við með af en það var ekki fyrir frá hver hvað hvenær hvar hvers "
        "vegna hvernig hvaða hve margir mörg eru voru hefur þetta þessi þú ég hann hún þeir mikið "
        "getur vera"
    ),
}
_TELLTALE = (
    (re.compile(r"[þðæ]|ö\w*ur\b", re.IGNORECASE), "is"),
    (re.compile(r"[ãõ]", re.IGNORECASE), "pt"),
    (re.compile(r"[ñ¿¡]", re.IGNORECASE), "es"),
    (re.compile(r"ß", re.IGNORECASE), "de"),
    (re.compile(r"[œçêèù]", re.IGNORECASE), "fr"),
)
_TELLTALE_WEIGHT = 0.6


def abstention(question: str) -> str:
    """The sentence that says "not in the documents" in the language of `question`."""
    return SENTENCES[guess_language(question)]


def guess_language(text: str) -> str:
    """The ISO 639-1 code of the language of `text` among those of `SENTENCES`; "en" if in doubt.

    By script first, then by frequent words and telltale letters. Meant for a question: it needs
    no more than a few words and always says the same.
    """
    text = composed(text)
    if _KANA.search(text):
        return "ja"
    if _IDEOGRAPHS.search(text):
        return "zh"
    if _OTHER_SCRIPT.search(text):
        return "en"
    found = _WORD.findall(text.casefold())
    votes: Counter[str] = Counter()
    for language, frequent in _FREQUENT.items():
        votes[language] = sum(word in frequent for word in found)
    scores = dict[str, float](votes)
    for letters, language in _TELLTALE:
        if letters.search(text):
            scores[language] += _TELLTALE_WEIGHT
    best = max(scores, key=lambda language: scores[language])
    return best if scores[best] > scores["en"] else "en"
