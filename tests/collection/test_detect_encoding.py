"""Are texts in old encodings recognised, short notes as well as pages?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.collection.file_readers.detect_encoding import decoded, detect_encoding
from birchbark.collection.file_readers.text_encoding import decode_text
from birchbark.collection.parsing.intake import Intake

# The Universal Declaration of Human Rights, article 1, and encodings in which it was written.
ARTICLES = {
    "cp1252 iso8859-15 mac-roman": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués "
        "de raison et de conscience et doivent agir les uns envers les autres dans un esprit de "
        "fraternité.",
        "Alle mennesker er født frie og lige i værdighed og rettigheder. De er udstyret med "
        "fornuft og samvittighed, og de bør handle mod hverandre i en broderskabets ånd.",
        "Hver maður er borinn frjáls og jafn öðrum að virðingu og réttindum. Menn eru gæddir "
        "vitsmunum og samvizku, og ber þeim að breyta bróðurlega hverjum við annan.",
    ),
    "cp1250 iso8859-2": (
        "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem "
        "a svědomím a mají spolu jednat v duchu bratrství.",
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni "
        "obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    ),
    "cp1254": (
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana "
        "sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
    ),
    "cp1251 koi8-r iso8859-5 cp866 mac-cyrillic": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены "
        "разумом и совестью и должны поступать в отношении друг друга в духе братства.",
    ),
    "cp1253 iso8859-7": (
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. "
        "Είναι προικισμένοι με λογική και συνείδηση.",
    ),
    "cp1255": (
        "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך "
        "חובה עליהם לנהוג איש ברעהו ברוח של אחוה.",
    ),
    "cp1256 iso8859-6": (
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق، وقد وهبوا عقلا وضميرا وعليهم أن يعامل "
        "بعضهم بعضا بروح الإخاء.",
    ),
    "tis-620": ("มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม",),
    "shift_jis euc_jp": (
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    ),
    "gb18030": ("人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。",),
    "big5": ("人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心。",),
    "euc_kr": ("모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",),
}
NOTES = (
    "© 2024 Acme Inc.",
    "25°C",
    "§ 12",
    "«yes»",
    "±3 µm",
    "½ cup sugar",
    "5 €",
    "It’s white",
    "“quoted”",
    "La liberté guide nos pas.",
    "à bientôt",
    "Ça va?\nOui, très bien. Où êtes-vous?",
    "Perché no? È già tardi.",
    "Größe: 5 m²",
    "Straße 12",
    "Señor Núñez vive aquí.",
    "São Paulo é grande",
    "fjord på Ærø",
    "naïve",
    "Öl",
)
OTHER_NOTES = {
    "cp1251": ("Привет", "Привет, мир!", "Как дела?\nХорошо.", "Цена: 500 руб."),
    "koi8-r": ("Привет, мир!",),
    "cp1253": ("Καλημέρα", "Τιμή: 5 ευρώ"),
    "cp1255": ("שלום", "קליפת “הלבנה” לבנה…"),
    "cp1256": ("مرحبا",),
    "cp1250": ("Žluťoučký kůň", "Dzień dobry, Łódź"),
    "shift_jis": ("こんにちは", "東京都"),
    "gb18030": ("你好",),
    "big5": ("你好",),
    "euc_kr": ("안녕하세요",),
}


def read(raw: bytes, *, markup: bool = False) -> str:
    """Return the text of a file with these bytes."""
    return decode_text(raw, Path("a"), Intake(), markup=markup)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [(name, text) for names, texts in ARTICLES.items() for name in names.split() for text in texts
     if not (name == "mac-roman" and "ð" in text)],
)  # fmt: skip
def test_a_paragraph_is_read_in_its_encoding(encoding: str, text: str) -> None:
    """ISO encodings are recognised too, whose letters are elsewhere than in those of Windows."""
    assert read(text.encode(encoding)) == text
    assert read(f"{text}\n{text}".encode(encoding)) == f"{text}\n{text}"


@pytest.mark.parametrize("text", NOTES)
def test_a_short_note_is_in_windows_1252(text: str) -> None:
    """The bytes say too little for anything but the most frequent encoding."""
    assert detect_encoding(text.encode("cp1252")) == "cp1252"


@pytest.mark.parametrize(
    ("encoding", "text"), [(name, text) for name, texts in OTHER_NOTES.items() for text in texts]
)
def test_a_short_note_in_another_script(encoding: str, text: str) -> None:
    """Letters that ASCII lacks follow one another, unlike in Western languages."""
    assert read(text.encode(encoding)) == text


def test_the_encoding_of_the_end_of_a_long_file() -> None:
    """Chardet alone reads 200,000 bytes, which are in ASCII here, and the text would be Western."""
    words = "The bark of the birch is white.\n" * 10_000
    text = f"{words}Кора берёзы белая и легко снимается со ствола дерева.\n"
    assert read(text.encode("cp1251")) == text.rstrip("\n")


@pytest.mark.parametrize("symbol", "©°§£–éñ½’")
def test_one_symbol_in_a_long_english_text(symbol: str) -> None:
    """Windows-1252 comes first of all encodings in which the text is equally likely."""
    words = "The bark of the birch is white and peels easily from the trunk. " * 100
    assert detect_encoding(f"{words} {symbol} {words}".encode("cp1252")) == "cp1252"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("weiß, grün\ncaf".encode() + b"\xe9", "weiß, grün\ncafé"),
        (b"caf\xe9\n" + "weiß".encode(), "café\nweiß"),
        ("Größe der K".encode() + b"\xf6" + "rbe – weiß".encode(), "Größe der Körbe – weiß"),
        ("Кора берёзы белая".encode() + b"\x96", "Кора берёзы белая–"),
        ("白樺の樹皮は白く".encode() + b"\x85" + "簡単に".encode(), "白樺の樹皮は白く…簡単に"),
    ],
)
def test_one_bad_byte_does_not_spoil_a_text_in_utf_8(raw: bytes, text: str) -> None:
    """Only the byte itself is read as Windows-1252."""
    assert read(raw) == text


@pytest.mark.parametrize("name", ["iso-8859-1", "windows-1252", "iso-8859-15", "windows-1251"])
def test_utf_8_takes_precedence_over_a_false_declaration(name: str) -> None:
    """Editors save pages in UTF-8 and leave what their head declares."""
    page = f'<meta charset="{name}"><p>Größe – 5 €'
    assert read(page.encode(), markup=True) == page


def test_names_of_hosts_are_no_encoding_of_texts() -> None:
    """Python's `idna` raises an error of its own for a label that is too long."""
    assert decoded(b"xn--" + b"a" * 100, "idna") is None
