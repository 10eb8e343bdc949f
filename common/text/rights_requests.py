"""Detects posts that may be a request about the author's own data: know, forget, do not reply, why did you answer.

A pre-filter before a model reads a post, in many languages: it finds nearly all requests, and others too. It decides
nothing else. A text in a script that has no words here always passes. Each row is one pass over the text.
"""

import re
import unicodedata
from typing import Literal

from common.text.closings import asks
from common.text.injections import gives_orders
from common.text.patterns import lazy

RequestKind = Literal["know", "forget", "no_reply", "reply_again", "why", "delete"]

MOST_CHARS = 6_000
"""How much of a text is read: five direct messages of the longest kind, which may come at once."""
_SHORT_WORDS = 8
_MOST_WORDS = 30
_NEAR_CHARS, _NEXT_CHARS = 28, 14
_BESIDE_CHARS, _ADJOINING_CHARS = 11, 6
_MARKS = lazy("[\u0300-\u036f\u200b-\u200f\ufe0f]")
_JOINTS = lazy("['\u2019\u02bc-]")
_HANDLE = lazy(r"@[A-Za-z0-9_.-]{1,300}")
_CLAUSE_ENDS = lazy("[.,;:!?\\n\u2026\u060c\u061f\u3001\u3002\uff01\uff0c\uff1f]")
_POLITE = lazy(r"\b(?:please|pls|prefer|rather|want|bitte|svp|lutfen)\b")
_LETTER = lazy(r"[^\W\d_]")
_KNOWN_SCRIPTS = (
    "LATIN",
    "CYRILLIC",
    "GREEK",
    "ARABIC",
    "HEBREW",
    "DEVANAGARI",
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "FULLWIDTH",
    "MODIFIER",
)

# NOTE(self): beginnings of words; a row after the bar "/" matches anywhere in a word, for scripts that join words.
_FORGET = """
    throw toss trash dump\\b gone\\b get\\ rid rid\\ of take\\ me\\ out clear wirf werf schmeiss wegwerf
    debarrass jette\\b disparai
    deshaz tira\\b bota\\b desaparec joga deita\\b desfaz desfac suma\\b sumir butta getta spari liberat haal
    halen wyrzuc pozbadz
    выброс выкин избав исчез викин slang kasta sudda smid\\b heita havit hafiza vyhod aruncat dobd buang vut\\b
    forg eras delet wip(e|ing) purg scrub unlearn unremember eliminat eliminar remove removing gdpr dsgvo rgpd
    expunge destroy discard
    vergiss vergess losch entfern streich tilg vernicht
    oubli effac supprim elimin borr olvid elimina suprim quit(a|e)
    esquec esquec apag delet remov exclu
    dimentic cancell scord rimuov
    vergeet verget wis(sen)?\\b gooi verwijder
    zapomn usun skasuj wymaz wykasuj kasow usuw
    забуд забыт забыв удал сотр стер стир очист вычеркн
    видал зітр
    unut sil(?!ikon|en|ah) kaldir
    glom radera ta\\ bort slet slett fjern
    unohd poist
    zapome smaz vymaz odstran
    ξεχα ξεχν διαγρα σβησ
    lupak hapus quen xoa
    uita sterge felejts torol
    / 忘 削除 消せ 消して 消去 消し 抹消 删 刪 清除 抹去 抹掉
      잊 삭제 지워 지우
      انس نسي نسى حذف احذف امسح مسح محو امح
      שכח תשכח מחק תמחק הסר
      भूल भुला हटा मिटा डिलीट
"""
_KNOW = """
    histor list archiv chronik behalt behielt aufgehob aufheb gemerkt kennst retien garde conserv apunt anot
    ficha registo
    annot zapisk notat mam\\b masz запом досье сведен замет kayd kayit anteckn noter muistiin sbir notes\\b
    heb\\ je hast\\ du
    know known knew stor(e|ed|ing|age)\\b remember record data info file profile sav(e|ed)\\b keep kept collect
    memor
    dossier hold note logg? have\\ on got\\ on track
    weiss wisst gespeichert speicher merk daten wissen informationen akte aufgezeich notiert gesammelt
    sais savoir savez connai donnee renseign stock memoris retenu garde enregistr
    sabes sabe saber conoc dato guard almacen recuerd registr tienes
    dados guarda armazen lembr conhec
    sai sapete conosc dati ricord memorizz conserv salvat
    weet weten gegevens bewaar onthoud opgeslagen opslaan bijgehouden kennis
    wiesz wiecie dane danych pamieta przechow zapisa zebra
    зна(ешь|ете|ет|еш|єш|єте|ешь)\\w* данны помн храни сохран запис собра информац знае
    biliyor biliyorsun bilgi veri kay(i|ı)t sakl hatirl tut(uyor|ul)
    vet vad\\ du sparat lagrat ved oplysn gem(t|mer) lagret opbevar uppgift kanner husk minns kommer\\ du\\ ihag
    tied tallen muist
    vis vite udaj uloz pamatuj
    ξερ γνωρ δεδομεν αποθηκευ θυμ
    tahu simpan ingat biet luu tru thong\\ tin du\\ lieu
    stii date tud adat tarol
    / 知っ 知って 知り 覚え 記録 情報 データ 保存 知道 知晓 了解 记 記 资料 資料 信息 資訊 数据 保存 掌握 存了 存着
      알고 알아 알지 정보 데이터 저장 기억 기록
      تعرف تعلم معلومات بيانات تخزن تحفظ تحتفظ سجل تتذكر محفوظ
      יודע מידע נתונים שומר שמור זוכר
      जानत पता जानकारी डेटा याद सहेज रखा रखी
"""
_ME = """
    our ours we\\b unser nous notre nos\\b nuestr noss nostr ons\\b onze nas\\b nasz наш нас bizim vart vara vores
    me\\b my\\b mine\\b myself i\\b im\\b us\\b
    mich mir mein ich\\b
    moi\\b me\\b m\\b mon\\b ma\\b mes\\b je\\b
    mi\\b mis\\b me\\b mio conmigo yo\\b
    mim\\b meu minha meus eu\\b comigo
    mi\\b me\\b mio mia miei mie\\b
    mij\\b mijn me\\b
    mnie mi\\b moj moich moje mna
    мен мне мной мо(й|я|е|и|ё|ї|є)\\w* мн
    ben bana beni benim hakkimda\\w*
    mig min mitt mina meg
    minu minä mina
    mne mi\\b
    με\\b μου\\b μενα
    saya aku toi\\b minh
    mine\\b rolam
    / 私 僕 俺 わたし 自分 我 咱 俺 나 내 저 제 ني عني بي לי עלי אותי שלי मुझ मेर हमें
"""
_REPLY = """
    repl(y|i) respon answer repond respuest respond contest writ wrote messag contact talk(ing)?\\b comment tag
    mention
    ping notif bother jump chime reach\\ out engag speak\\ to react interact butt(ing)?\\ in dm\\b @ say
    antwort schreib geschrieben anschreib kommentier erwaehn erwahn ansprech sprich anquatsch meld reagier
    repon ecri parl\\w* mention comment adress contact
    escrib respost habl coment mencion dirij dirig
    fal(a|e|ar)\\b escrev comente menciona
    rispo risposta scriv scritto parl commenta menzion
    antwoord reageer reageren schrijf praat geschreven bericht gereageerd
    odpow odpis pisa pisz napisa koment zaczepia
    отве пиш писа напис обращ коммент разгов встрева відпов
    yorum cevap yanit yaz(?!ilim) mesaj konus
    svar skriv kommenter kommentera prata snak
    vasta vastaa kirjoit kommentoi
    odpov odepis napsa kometuj
    απαντ γραφ εγραψ σχολια
    balas jawab tra\\ loi nhan\\ tin
    raspun valasz
    / 返信 返事 リプ 返さ 話しかけ 絡ま コメント メンション 回复 回覆 回我 回应 答复 回答 评论
      找我 说话 理我 艾特 回帖 回嘴
      답 댓글 말 걸 멘션 대꾸
      ترد رد تجب تجيب جواب تكتب كتبت تراسل تعلق علق
      תענה ענית להגיב תגיב הגבת לענות לכתוב תכתוב כתבת
      जवाब उत्तर रिप्लाई लिख टिप्पणी बात
"""
_LEAVE = """
    stop quit ceas leav alone quiet silenc shut mute unsubscribe unfollow opt block hush enough no\\ more go\\ away
    back\\ off halt without\\ me lay\\ off drop\\ it cut\\ it give\\ it\\ a\\ rest buzz\\ off
    hor\\ auf hoer\\ auf aufhor schluss lass ruhe schweig genug stopp halt\\ die verschon
    arret cess laisse tranquille silence tais ca\\ suffit foutez fiche stoppe
    para(r|s|d)?\\b deja basta dej(a|e|en)\\w* paz tranquil silencio calla
    par(e|em|a)\\b chega deixa sossego cala
    smett smettila basta lascia pace zitto ferma taci piantala
    laat rust ophoud hou\\ op stil\\b kappen genoeg
    przesta dosc zostaw spokoj daruj cicho stop koniec
    прекра хват останов отста перест молч оставь покое довольно стоп отъеб отвал припини досить залиш
    dur\\b yeter birak rahat sus kes(in)?\\b
    sluta sluta lat\\ mig stopp lamna ti\\ stille la\\ meg lad\\ mig tyst tie\\ stille ro\\b fred\\b hold\\ op
    lopeta riitt rauha jata
    prestan dost nech klid mlc
    σταματ φτανει αφησε ασε ησυχ
    berhenti cukup diam dung\\b ngung im\\ di thoi
    opreste lasa hagyd hagyj eleg
    / やめ 止め 黙 ほっと 放っ もういい 停 别 別 闭嘴 閉嘴 不要 够了 够 免打扰 打扰 安静 离我 走开 滚
      그만 멈 조용 하지 말 닥쳐 내버려
      توقف كف كفى اتركني دعني اسكت خلص وقف بطل
      די עזוב הפסק תפסיק שתוק מספיק
      बंद रुक बस मत छोड़ चुप अकेला
"""
_NOT = """
    not\\b don dont do\\ not never no\\b nomore anymore please pls prefer rather want want\\ you\\ to
    nicht kein nie niemals mehr bitte
    ne\\b pas\\b plus\\b jamais n\\b svp
    no\\b ya\\b nunca jamas mas\\b
    nao nunca mais
    non\\b mai\\b piu
    niet geen nooit meer
    nie\\b nigdy wiecej juz
    не\\b нет\\b больше никогда ни\\b більше
    artik bir\\ daha asla lutfen istem
    inte aldrig ikke aldri ej\\b mer\\b mere\\b
    ala\\b alk(aa|oo) ei\\b enaa enää
    ne\\w+ uz\\b nikdy
    μην δεν ποτε πια
    jangan tidak khong đung dung\\b
    nu\\b ne\\b
    / ない ません ないで しない 不 别 別 莫 勿 말 지 않 안 لا لن אל לא मत नहीं ना
"""
_MAY = """
    idea\\b ideia\\b andrat mind\\b avis\\b uberlegt anders bedacht zdanie передум передоум fikrim
    again may can could allow\\w* permit welcome ok\\b okay fine back resume changed unmute start unblock
    invite happy
    free feel\\ free mind
    wieder darf darfst kannst konn gern erlaub ok
    peux pouv nouveau autoris droit
    pued puedes nuevo otra\\ vez vuelv permit volver
    pode podes novo novamente volt deixo
    puoi puo nuovo ancora permess di\\ nuovo
    mag\\b mogen weer opnieuw kan\\b toch
    mozesz znow znowu ponownie pozwal
    можешь можете снова опять разреш можно знову
    yine tekrar yeniden izin olur abilirsin ebilirsin \\w+bilirsin
    igen gerne kan\\b far\\b maa saat\\b saa\\b taas jalleen
    muzes znovu zase
    μπορεις ξανα παλι
    boleh lagi lai\\b duoc
    poti din\\ nou ujra megint
    / また いい もう一度 再び 可以 再 重新 又 恢复 允许 다시 돼 괜찮 يمكن مرة مجددا تستطيع יכול שוב מותר फिर सकत दोबारा
"""
_WHY = """
    what\\ (led|brought|got|makes|drove) comment\\ ca\\ se d.ou\\b wie\\ kommst wer\\ hat aus\\ welchem a\\ santo
    a\\ que\\ viene que\\ te\\ hizo que\\ te\\ llev quien\\ te o\\ que\\ te quem\\ te cosa\\ ti chi\\ ti
    wat\\ bracht co\\ cie z\\ jakiego
    с\\ какой что\\ застав кто\\ тебя sebeb vad\\ fick hur\\ kommer hvad\\ fik hva\\ fikk mika\\ sai
    why how\\ come what\\ made reason what\\ for who\\ asked what\\ prompted wherefore
    warum wieso weshalb wozu grund
    pourquoi raison qu\\ est\\ ce\\ qui
    por\\ que porque para\\ que motivo razon razao
    perche come\\ mai motivo
    waarom hoezo reden
    dlaczego czemu po\\ co powod
    почему зачем отчего причин чому навіщо
    neden niye nicin sebep
    varfor hvorfor hvordan varfor
    miksi
    proc\\b duvod
    γιατι
    kenapa mengapa tai\\ sao vi\\ sao
    de\\ ce miert
    / 什么原因 什么理由 凭什么 何故 الذي
      なぜ なんで どうして 何で 为什么 為什麼 为何 為何 干嘛 干吗 怎么 왜 어째서 لماذا ليش ليه למה מדוע क्यों किसलिए
"""
_YOU = """
    you u\\b ya\\b your this it that
    du\\b dir dich dein ihr\\b sie\\b
    tu\\b te\\b toi vous
    tu\\b te\\b usted vos\\b
    voce voces
    ti\\b tu\\b
    je\\b jij jou
    ty\\b ci\\b
    ты тебя вы\\b ти\\b
    sen\\b bana
    / 你 您 あなた 君 お前 너 당신 أنت انت אתה तुम आप तू
"""


def _pattern(rows: str) -> re.Pattern[str]:
    starting, _, anywhere = rows.partition("\n    / ")
    begins = "|".join(dict.fromkeys(_plain(stem).replace("~", " ") for stem in _split(starting)))
    inside = "|".join(map(re.escape, dict.fromkeys(map(_plain, anywhere.split()))))
    return lazy(f"\\b(?:{begins})" + (f"|{inside}" if inside else ""))


def _split(rows: str) -> list[str]:
    return rows.replace("\\ ", "~").split()


def _plain(text: str) -> str:
    """Return a text in lower case without accents; other marks stay."""
    folded = _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold())).replace("ı", "i").replace("đ", "d")
    return unicodedata.normalize("NFC", folded)


_FORGETS, _KNOWS, _MINE, _REPLIES, _LEAVES, _NEGATES, _ALLOWS, _ASKS_WHY, _ADDRESSES = map(
    _pattern, (_FORGET, _KNOW, _ME, _REPLY, _LEAVE, _NOT, _MAY, _WHY, _YOU)
)


def may_be_rights_request(text: str) -> bool:
    """Return whether a model should check the post for a request about what is known of its author.

    Only the first 6,000 characters count. Handles do not count as words. A post that orders a model to ignore its
    instructions is not checked.
    """
    said = _spoken(text)
    letters = _LETTER.findall(said)
    return bool(letters) and (_is_of_unknown_script(letters) or _has_the_words(said)) and not gives_orders(text)


def kind_by_words(text: str) -> RequestKind | None:
    """Return what a post requests by its words alone, for posts that no model may read; None if nothing.

    Words that belong together must be near each other in a short post: it misses requests that a model finds, and
    mistakes few other posts for one.
    """
    said = _spoken(text)
    if not may_be_rights_request(text) or len(said.split()) > _MOST_WORDS:
        return None
    is_own = _found(said, _MINE)
    applying: dict[RequestKind, bool] = {
        "forget": _near(said, _FORGETS, _MINE),
        "why": _near(said, _ASKS_WHY, _REPLIES) and _found(said, _MINE, _ADDRESSES),
        "reply_again": is_own and _near(said, _REPLIES, _ALLOWS) and not _found(said, _NEGATES, _LEAVES),
        "no_reply": (is_own and not asks(text) and _near(said, _REPLIES, _NEGATES))
        or _near(said, _REPLIES, _LEAVES)
        or _near(said, _LEAVES, _MINE, _NEXT_CHARS),
        "know": asks(text) and _near(said, _KNOWS, _MINE, _NEXT_CHARS) and _found(said, _ADDRESSES),
    }
    return next((kind for kind, applies in applying.items() if applies), None)


def also_asks_for_no_reply(text: str) -> bool:
    """Return whether a post that asks to be forgotten also asks for no reply, by its words alone.

    They must be nearer to each other than for `kind_by_words`, in one clause: the subject is already known.
    """
    return any(
        _near(clause, _REPLIES, _NEGATES, _BESIDE_CHARS)
        or _near(clause, _REPLIES, _LEAVES, _BESIDE_CHARS)
        or _near(clause, _LEAVES, _MINE, _ADJOINING_CHARS)
        for clause in _CLAUSE_ENDS.split(_POLITE.sub(" ", _spoken(text)))
    )


def _spoken(text: str) -> str:
    return _plain(_JOINTS.sub(" ", _HANDLE.sub(" ", text[:MOST_CHARS])))


def _found(said: str, *rows: re.Pattern[str]) -> bool:
    return any(row.search(said) for row in rows)


def _near(said: str, row: re.Pattern[str], other: re.Pattern[str], chars: int = _NEAR_CHARS) -> bool:
    """Return whether a word of one row is within `chars` characters of a word of the other."""
    spans = (found.span() for found in row.finditer(said))
    return any(other.search(said, max(0, first - chars), last + chars) for first, last in spans)


def _has_the_words(said: str) -> bool:
    return (
        _found(said, _FORGETS)
        or (_found(said, _REPLIES) and _found(said, _NEGATES, _LEAVES, _ALLOWS, _ASKS_WHY))
        or (_found(said, _MINE) and _found(said, _KNOWS, _LEAVES, _ASKS_WHY))
        or (_found(said, _ASKS_WHY) and _found(said, _ADDRESSES))
        or (_found(said, _LEAVES) and len(said.split()) <= _SHORT_WORDS)
    )


def _is_of_unknown_script(letters: list[str]) -> bool:
    foreign = sum(not unicodedata.name(one, "").startswith(_KNOWN_SCRIPTS) for one in letters[:200])
    return foreign * 2 > min(len(letters), 200)
