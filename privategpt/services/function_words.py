"""The small words of a few languages: what a question has beside the things it is about.

Each language has a table of word classes, lower case, without accents removed. A word may stand
in several classes. These are the words that matter for telling a follow-up from a question that
stands alone, not complete grammars.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """`leads` open a follow-up; `references` stand for something said before, `objects` of them
    do so behind a verb or a preposition as well; `asking` words make
    a sentence a request of its own; `articles` point at something known; `prepositions` open a
    fragment; `others` carry no topic; `all` are all of these. `definitions` are openings of a
    question for a meaning.
    """

    leads: frozenset[str]
    references: frozenset[str]
    objects: frozenset[str]
    asking: frozenset[str]
    articles: frozenset[str]
    prepositions: frozenset[str]
    others: frozenset[str]
    definitions: tuple[str, ...]
    all: frozenset[str]


def _language(
    *,
    leads: str,
    references: str,
    asking: str,
    articles: str = "",
    prepositions: str,
    others: str,
    objects: str = "",
    definitions: tuple[str, ...] = (),
) -> Language:
    classes = (leads, references, asking, articles, prepositions, others)
    return Language(
        leads=frozenset(leads.split()),
        references=frozenset(references.split()),
        objects=frozenset(objects.split()),
        asking=frozenset(asking.split()),
        articles=frozenset(articles.split()),
        prepositions=frozenset(prepositions.split()),
        others=frozenset(others.split()),
        definitions=definitions,
        all=frozenset(" ".join(classes).split()),
    )


ENGLISH = _language(
    leads="and but or also then",
    references="it its itself he him his himself she her hers herself they them their theirs this "
    "that these those such former latter same there",
    objects="it him them",
    asking="what who whom whose which when where why how is are was were be been do does did can "
    "could will would should has have had may might must tell give show explain describe define "
    "list summarize summarise compare find name s re",
    articles="the",
    prepositions="for in on at with without about from to of by between under over after before "
    "during since until per as into than against",
    others="a an i you we me my our your us one ones any some another other else more most less "
    "least much many long far often old big large very so too just only again please thanks thank "
    "ok okay yes no not all both each every if example examples detail details point part reason "
    "reasons difference elaborate first second third last next previous above below t d ll ve m "
    "now well hello hi really exactly mean sure got it's",
)

GERMAN = _language(
    leads="und aber oder auch dann sowie",
    references="er ihn ihm sein seine seinen seinem seiner seines sie ihr ihre ihren ihrem ihrer "
    "ihnen es dies diese dieser dieses diesen diesem jene jener jenes davon dazu damit darin "
    "daran darauf darüber dafür dagegen dabei danach davor deren dessen dort selbe derselbe "
    "dieselbe dasselbe",
    asking="was wer wen wem wessen welche welcher welches welchen welchem wann wo wohin woher "
    "warum wieso weshalb wie wozu ist sind war waren wird werden wurde wurden hat haben hatte kann "
    "können könnte soll sollte muss darf gibt nenne erkläre erklär beschreibe zeige liste sag "
    "fasse definiere",
    articles="der die das den dem des",
    prepositions="für in im an am auf mit ohne über von vom zu zum zur bei nach vor während seit "
    "bis unter zwischen gegen aus durch um pro als ab",
    others="ein eine einen einem einer eines ich du wir mir mich uns mein meine dein man noch mehr "
    "viel viele hoch lang lange groß alt oft weit sehr so nur schon bitte danke ok ja nein nicht "
    "kein keine alle alles etwas anderes andere weitere beispiel beispiele grund gründe "
    "unterschied genauer erste zweite dritte letzte nächste oben unten mal denn doch eigentlich "
    "sonst wenn dass",
)

FRENCH = _language(
    leads="et mais ou aussi puis alors",
    references="il elle ils elles lui leur leurs eux son sa ses celui celle ceux celles ce cet "
    "cette ces cela ça ceci y en dont là même mêmes",
    asking="que qui quoi quel quelle quels quelles quand où pourquoi comment combien est sont "
    "était étaient fut a ont avait peut peuvent doit doivent qu explique expliquez décris donne "
    "donnez montre liste définis résume",
    articles="le la les l",
    prepositions="pour dans sur avec sans de du des d à au aux par entre sous après avant pendant "
    "depuis contre chez vers selon",
    others="un une je tu nous vous me moi te mon ma mes votre vos notre on plus moins très tout "
    "tous toute toutes autre autres encore merci oui non ne pas n s c j t m si exemple exemples "
    "détail détails raison différence premier première deuxième dernier dernière ci "
    "bien svp plaît stp se été",
    definitions=("qu est ce que", "qu est ce qu", "c est quoi", "que signifie", "qui est"),
)

SPANISH = _language(
    leads="y e pero o también entonces",
    references="él ella ellos ellas lo le les su sus este esta estos estas ese esa esos esas eso "
    "esto aquel aquella ello mismo misma ahí allí",
    asking="qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuánta cuántos cuántas es son "
    "era eran fue fueron está están ha han puede pueden debe hay explica explique describe dime "
    "da muestra define resume",
    articles="el la los las",
    prepositions="para en con sin sobre de del a al por entre bajo después antes durante desde "
    "hasta contra según",
    others="un una unos unas yo tú nosotros me mi mis te tu tus nos más menos muy todo todos toda "
    "todas otro otra otros otras gracias sí no si ejemplo ejemplos detalle detalles razón "
    "diferencia primero primera segundo último última favor por se que algo",
    definitions=("qué es", "qué son", "qué significa", "quién es", "quién fue"),
)

ITALIAN = _language(
    leads="e ed ma o anche poi allora",
    references="lui lei loro esso essa essi esse lo gli suo sua suoi sue questo questa questi "
    "queste quello quella quelli quelle ciò ne ci stesso stessa lì là",
    asking="che chi cosa quale quali qual quando dove perché come quanto quanta quanti quante è "
    "sono era erano fu ha hanno può possono deve cos spiega spiegami descrivi dimmi dammi mostra "
    "elenca definisci riassumi",
    articles="il lo la i gli le l",
    prepositions="per in nel nella nei nelle su sul sulla con senza di del della dei delle dell da "
    "dal dalla a al alla tra fra sotto dopo prima durante contro secondo",
    others="un uno una io tu noi voi mi mio mia ti si più meno molto tutto tutti tutta tutte altro "
    "altra altri altre ancora grazie sì no non se esempio esempi dettaglio dettagli ragione "
    "differenza primo seconda ultimo ultima favore stato stata",
    definitions=("che cos è", "cos è", "cosa sono", "che cosa sono", "chi è", "cosa significa"),
)

PORTUGUESE = _language(
    leads="e mas ou também então",
    references="ele ela eles elas lhe seu sua seus suas dele dela deles delas este esta estes "
    "estas esse essa esses essas isso isto aquele aquela aquilo mesmo mesma nele nela lá ali",
    asking="que quem qual quais quando onde como quanto quanta quantos quantas é são era eram foi "
    "foram está tem têm pode podem deve há explique explica descreva diga dê mostre liste defina "
    "resuma porque porquê",
    articles="o a os as",
    prepositions="para em no na nos nas com sem sobre de do da dos das por pelo pela entre sob "
    "após depois antes durante desde até contra ao à segundo",
    others="um uma uns umas eu tu você nós me meu minha te mais menos muito todo todos toda todas "
    "outro outra outros outras obrigado obrigada sim não se exemplo exemplos detalhe detalhes "
    "razão diferença primeiro primeira último última favor",
    definitions=("o que é", "o que são", "que é", "quem é", "quem foi", "o que significa"),
)

DUTCH = _language(
    leads="en maar of ook dan",
    references="hij hem zijn zij ze haar hun hen het dit dat deze die daarvan daarmee daarin "
    "daarover daarvoor ervan erin ermee er daar dezelfde hetzelfde",
    asking="wat wie welke welk wanneer waar waarom hoe is zijn was waren wordt worden werd werden "
    "heeft hebben had kan kunnen moet mag leg beschrijf geef toon noem definieer vat",
    articles="de het",
    prepositions="voor in op met zonder over van naar bij na tijdens sinds tot onder tussen tegen "
    "uit door om per als te aan",
    others="een ik jij je we wij mij me mijn ons jouw nog meer veel vele lang hoog groot oud zeer "
    "zo alleen al bedankt dank ja nee niet geen alle alles iets andere anders voorbeeld "
    "voorbeelden reden verschil eerste tweede laatste volgende graag eens",
)

POLISH = _language(
    leads="a i ale lub albo także też oraz",
    references="on ona ono oni one jego jej ich jemu mu nim nią nimi ją go im ten ta to te tego "
    "tej tych temu tym tam tamten taki taka sam sama tutaj",
    asking="co kto kogo komu czym który która które którego jaki jaka jakie jakiego jaką kiedy "
    "gdzie dlaczego czemu jak ile czy jest są był była było były będzie może mogą ma mają "
    "wyjaśnij opisz podaj pokaż wymień zdefiniuj",
    prepositions="dla w we na z ze bez o do od po przed przy podczas między pod nad przeciw przez "
    "za u według",
    others="ja ty my mi mnie mój moja nas więcej mniej bardzo tylko już jeszcze proszę dzięki "
    "dziękuję tak nie wszystko wszystkie inny inna inne coś przykład przykłady powód różnica "
    "pierwszy drugi ostatni się no",
)

SWEDISH = _language(
    leads="och men eller också sedan",
    references="han honom hans hon henne hennes den det dess de dem deras denna detta dessa där "
    "samma sin sitt sina",
    asking="vad vem vilka vilken vilket när var varför hur är blir blev har hade kan kunde ska "
    "skulle måste får finns förklara beskriv ge visa lista definiera",
    prepositions="för i på med utan om från till av vid efter före under sedan mellan mot genom "
    "per som åt",
    others="en ett jag du vi mig min mitt mina oss mer mycket många lång hög stor gammal bara "
    "redan tack ja nej inte ingen alla allt något annan annat andra exempel skäl skillnad första "
    "sista nästa snälla så att",
)

RUSSIAN = _language(
    leads="и а но или также тоже ещё еще",
    references="он она оно они его её ее ему ей им их них нему ней нём нем ним ними этот эта это "
    "эти этого этой этому этих тот та то те того той там такой такая такие сам сама",
    asking="что кто кого кому чем чего какой какая какое какие какого каков какова когда где "
    "куда откуда почему зачем как сколько ли есть был была было были будет может могут объясни "
    "объясните опиши расскажи покажи назови перечисли",
    prepositions="для в во на с со без о об до от по перед при после между под над против через "
    "из у к про",
    others="я ты мы вы мне меня мой моя нас нам больше меньше очень только уже пожалуйста спасибо "
    "да нет не все всё другой другая другие пример примеры причина разница первый второй последний "
    "ну же",
)

LANGUAGES = (
    ENGLISH,
    GERMAN,
    FRENCH,
    SPANISH,
    ITALIAN,
    PORTUGUESE,
    DUTCH,
    POLISH,
    SWEDISH,
    RUSSIAN,
)

EXPLETIVES = frozenset(
    (
        *("it", "this", "that", "there", "es", "das", "dies", "il", "ce", "c", "ça"),
        *("het", "dit", "dat", "er", "det", "to", "это"),
    )
)
"""References that often stand for nothing: "Is it true that …"."""

CJK_LEADS = (
    *("那么", "那", "还有", "還有", "另外", "以及", "然后", "但是", "可是", "而且", "并且"),
    *("では", "じゃあ", "じゃ", "そして", "それで", "また", "でも", "あと", "ちなみに", "それなら"),
)

CJK_REFERENCES = (
    *("它", "他", "她", "牠", "这", "這", "那", "其", "上述", "前者", "后者", "此"),
    *("それ", "これ", "あれ", "その", "この", "あの", "彼", "そこ", "ここ", "そちら", "同じ"),
)

CJK_NO_REFERENCES = ("其他", "其它", "其中", "其实", "其實", "尤其", "吉他", "那些年", "その他")
"""Words that only look as if they held a reference."""

CJK_FUNCTION = (
    *("为什么", "為什麼", "什么时候", "什么", "什麼", "怎么样", "怎么", "怎麼", "多少", "多久"),
    *("几", "哪里", "哪儿", "哪个", "哪些", "谁", "誰", "吗", "嗎", "呢", "吧", "啊", "的", "了"),
    *("是", "有", "在", "请", "請", "更多", "详细", "例子", "举例", "说明", "解释", "继续", "和"),
    *(
        "どうして",
        "なぜ",
        "なんで",
        "いつ",
        "どこ",
        "だれ",
        "何",
        "いくら",
        "どう",
        "どの",
        "どんな",
    ),
    *(
        "ですか",
        "ますか",
        "でしょうか",
        "です",
        "ます",
        "ください",
        "教えて",
        "詳しく",
        "もっと",
        "例",
    ),
    *("について", "は", "が", "を", "に", "の", "と", "も", "へ", "か", "で", "とは", "くらい"),
)

CJK_FRAGMENT_ENDS = ("呢", "は", "では", "について")
"""A short question that ends like this only names what is different now: 预算呢？ 価格は？"""
