"""The language of a text: by script and by function words; of a query, by all its texts."""

import itertools

import pytest

from dgn.text.detection import found_language, query_language
from dgn.text.query import Query
from dgn.text.words import pieces_of
from foreign_texts import PASSAGES

SENTENCES = {
    "da": "Han fik ikke at vide, hvornår toget kom, og derfor blev de længe på perronen.",
    "de": "Die Brücke wurde im Winter geschlossen, weil das Eis zu dick war.",
    "en": "The bridge was closed in winter, because the ice was too thick.",
    "es": "El puente se cerró en invierno porque el hielo era muy grueso.",
    "fr": "Le pont a été fermé en hiver parce que la glace était trop épaisse.",
    "it": "Il ponte è stato chiuso in inverno perché il ghiaccio era molto spesso.",
    "nl": "De brug werd in de winter gesloten, omdat het ijs te dik was.",
    "pt": "A ponte foi fechada no inverno porque o gelo era muito espesso.",
    "sv": "Bron stängdes på vintern eftersom isen var för tjock och mycket hal.",
    "ro": "Podul a fost închis iarna pentru că gheața era foarte groasă.",
    "pl": "Most został zamknięty zimą, ponieważ lód był bardzo gruby.",
    "tr": "Köprü kışın kapatıldı, çünkü buz çok kalındı ve bu tehlikeliydi.",
    "id": "Jembatan itu ditutup pada musim dingin karena es yang sangat tebal.",
    "vi": "Cây cầu đã bị đóng vào mùa đông vì băng quá dày.",
    "ru": "Мост закрыли зимой, потому что лёд был слишком толстым.",
    "uk": "Міст закрили взимку, тому що лід був занадто товстим.",
    "ar": "أغلق الجسر في الشتاء لأن الجليد كان سميكا جدا.",
    "fa": "پل در زمستان بسته شد چون یخ بسیار ضخیم بود.",
    "hi": "पुल सर्दियों में बंद कर दिया गया था।",
    "zh": "冬天大桥关闭了，因为冰太厚。",
    "ja": "冬に橋は閉鎖されました。",
    "ko": "겨울에는 얼음이 두꺼워서 다리가 닫혔다.",
    "th": "สะพานปิดในฤดูหนาว",
    "und": "ხიდი ზამთარში დაიკეტა.",
}
ENGLISH = [
    "La La Land was filmed in Los Angeles by Damien Chazelle.",
    "Ludwig van Beethoven, Otto von Bismarck and Vasco da Gama",
    "Die Hard (1988)",
    "It was 5 μm wide, and α = 0.05.",
    "The word Beijing (北京) means northern capital.",
    "The Müller family moved to São Paulo; Renée stayed in Besançon.",
    "def __init__(self, col, lookup_type): self.col = col",
    "Title: Dreams | Year: 2017 | Artist: Dua Lipa",
    "He said “no” — and left…",
    "physical state means state of matter",
]


@pytest.mark.parametrize("code", SENTENCES)
def test_a_sentence_tells_its_language(code: str) -> None:
    assert found_language(SENTENCES[code]) == code
    assert found_language(SENTENCES[code].upper()) in (code, None)


@pytest.mark.parametrize("text", ENGLISH)
def test_english_with_foreign_names_is_english(text: str) -> None:
    assert found_language(text) in ("en", None)
    assert query_language([text], [pieces_of(text)]) == "en"


def test_short_texts_are_read_in_the_language_of_the_others() -> None:
    query = Query.of(SENTENCES["de"], ["Brücke geschlossen", "Angela Merkel"])
    assert query.read_language == "de"


def test_a_short_query_takes_the_language_of_most_passages() -> None:
    passages = [SENTENCES["de"], SENTENCES["fr"], SENTENCES["de"], "Merkel"]
    for order in itertools.permutations(passages):
        assert Query.of("Brücke Merkel", order).read_language == "de"


def test_one_foreign_passage_does_not_change_the_others() -> None:
    english = [SENTENCES["en"], *ENGLISH]
    assert Query.of(SENTENCES["en"], [*english, SENTENCES["fr"]]).read_language == "en"


@pytest.mark.parametrize("code", SENTENCES)
def test_a_query_is_read_in_one_language(code: str) -> None:
    assert query_language([SENTENCES[code], "1911", SENTENCES[code]]) == code


def test_a_given_language_is_the_language_of_all_texts() -> None:
    query = Query.of("Wer?", ["The bridge was closed.", "Ich."], language="de-CH")
    assert query.read_language == "de"


def test_the_examples_of_the_languages_are_found() -> None:
    wrong = [
        code
        for code, (question, *passages) in PASSAGES.items()
        if Query.of(question, passages).read_language not in (code, "da" if code == "no" else code)
    ]
    assert wrong == []
