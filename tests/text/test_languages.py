"""Words, stems and numbers of languages other than English, on texts of our own."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dgn
from dgn.errors import InvalidInput
from dgn.text.languages import (
    LANGUAGE_CODES,
    checked_language,
    find_language,
    spelling_vectors,
    stems_of,
    word_list,
    written_words,
)
from foreign_texts import PASSAGES
from models import shipped

FORMS = {
    "ar": ("المكتبات", "المكتبة"),
    "cs": ("mostů", "mosty"),
    "da": ("broernes", "broerne"),
    "de": ("Häuser", "Hauses"),
    "el": ("γέφυρες", "ΓΕΦΥΡΑ"),
    "es": ("canciones", "canción"),
    "fa": ("كتاب‌ها", "کتاب"),
    "fi": ("siltojen", "siltoja"),
    "fr": ("fermées", "ferme"),
    "hi": ("लड़कियों", "लड़की"),
    "hu": ("hidakat", "hidak"),
    "id": ("membangun", "bangunan"),
    "it": ("navi", "nave"),
    "ko": ("다리는", "다리의"),
    "nl": ("bruggen", "brug"),
    "no": ("broenes", "broene"),
    "pl": ("mostu", "mosty"),
    "pt": ("navios", "navio"),
    "ro": ("oraşe", "orașe"),
    "ru": ("моста", "мосты"),
    "sv": ("broarnas", "broarna"),
    "tr": ("İstanbul'da", "istanbul"),
}
"""Two forms of one word, or two spellings of it."""


def stem_of(word: str, code: str) -> str:
    language = find_language(code)
    (written,) = language.written(word.replace("\u200c", ""))
    return language.stem(language.read(written))


@pytest.mark.parametrize("code", FORMS)
def test_forms_of_a_word_have_one_stem(code: str) -> None:
    first, second = FORMS[code]
    assert stem_of(first, code) == stem_of(second, code)


@pytest.mark.parametrize("code", PASSAGES)
@pytest.mark.parametrize("is_given", [False, True])
def test_the_passage_about_the_question_is_selected(code: str, is_given: bool) -> None:
    question, answer, other = PASSAGES[code]
    language = code if is_given else None
    for passages in ([answer, other], [other, answer]):
        selection = shipped().select(question, passages, k=1, language=language)
        assert selection.texts == (answer,), code


def test_covered_words_are_in_the_passage_and_readable() -> None:
    question, answer, _ = PASSAGES["zh"]
    (selected,) = shipped().select(question, [answer], k=1).explain().selected
    words = {word.word for word in selected.covers if word.source == "text"}
    assert words == {"大", "桥", "时", "通", "车"} & set(answer)
    question, answer, _ = PASSAGES["de"]
    (selected,) = shipped().select(question, [answer], k=1).explain().selected
    by_source = {word.word: word.source for word in selected.covers}
    assert by_source["Abo"] == "text"
    assert set(by_source) <= {"Abo", "kündige", "mein"}


def test_function_words_weigh_little_and_question_words_nothing() -> None:
    language = find_language("de")
    (rows,), table = shipped().encoder.reader.read(["wie ich 1901 1.901 Haus"], ["de"])
    assert table.facts[rows, 1:].tolist() == [
        [0, 0, 1, 1],
        [0, 0, 1, 0],
        [1, 1, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 0, 0],
    ]
    assert language.facts("haus").rarity > language.facts("ich").rarity


@pytest.mark.parametrize(
    ("code", "one", "other"),
    [
        ("de", "1.500", "1500"),
        ("de", "1.500,50", "1500,5"),
        ("de", "3,5", "3,50"),
        ("en", "1,500.50", "1,500.5"),
        ("ar", "١٩١١", "1911"),
        ("fa", "۱۹۱۱", "1911"),
        ("hi", "१९११", "1911"),
        ("zh", "1,500", "1500"),
    ],
)
def test_numbers_with_the_same_value_are_the_same(code: str, one: str, other: str) -> None:
    assert stems_of(one, code) == stems_of(other, code)


def test_a_point_is_not_a_comma() -> None:
    assert stems_of("1.500", "de") != stems_of("1,500", "de")
    assert stems_of("3.5", "zh") != stems_of("35", "zh")


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        ("fr", "L'eau coûte 20 000 euros", "L eau coûte 20000 euros"),
        ("it", "dell'acqua", "dell acqua"),
        ("de", "Im Jahr 1911 kamen 300 Leute, 12 345.", "Im Jahr 1911 kamen 300 Leute 12345"),
        ("ru", "(1 500 000 рублей)", "1500000 рублей"),
        ("tr", "Ankara'da", "Ankara'da"),
        ("zh", "iPhone手机2024年", "iPhone 手 机 2024 年"),
        ("ja", "東京タワーは高い", "東 京 タワー は 高 い"),
        ("th", "ที่นี่", "ที่ นี่"),
        ("hi", "लड़कियों ने", "लड़कियों ने"),
        ("ar", "الـمدينة ـ", "الـمدينة"),
        ("und", "საქართველო 1991", "საქართველო 1991"),
    ],
)
def test_words_are_split_as_the_language_writes_them(code: str, text: str, words: str) -> None:
    assert written_words(text, code) == words.split()


def test_upper_case_is_that_of_the_language() -> None:
    turkish, german = find_language("tr"), find_language("de")
    assert turkish.read("ISPARTA") == "ısparta"
    assert turkish.read("İzmir") == "izmir"
    assert german.read("STRASSE") == german.read("Straße")


def test_lists_are_lists_of_words() -> None:
    for code in set(LANGUAGE_CODES) - {"en", "und"}:
        language, lists = find_language(code), []
        for name in ("function_words", "question_words"):
            words = word_list(code, name)
            assert len(words) == len(set(words)), code
            for word in words:
                parts = language.written(word)
                if code not in ("zh", "ja"):
                    assert parts == (word,), (code, word)
                assert all(language.facts(language.read(part)).is_function for part in parts)
            lists.append(set(words))
        assert not set.intersection(*lists), code


def test_codes_are_checked() -> None:
    assert checked_language("de-AT") == checked_language("DE") == "de"
    assert checked_language("nb") == "no"
    assert "en" in LANGUAGE_CODES
    for wrong in ("klingon", "", 3):
        with pytest.raises(InvalidInput, match="language must be None, or one of en, ar"):
            checked_language(wrong)
    with pytest.raises(InvalidInput, match="language"):
        shipped().select("Wer?", ["Ich."], language="xx")


def test_words_with_a_similar_spelling_are_near() -> None:
    words = ["kündigung", "abonnementkündigung", "fahrrad", "a", "kündigung"]
    vectors = spelling_vectors(words, 256)
    near = vectors @ vectors.T
    assert near[0, 4] == pytest.approx(1)
    assert near[0, 1] > 0.4 > 0.2 > abs(near[0, 2])
    assert not vectors[3].any()
    np.testing.assert_array_equal(vectors[:2], spelling_vectors(words[:2], 256))
    assert spelling_vectors([], 256).shape == (0, 256)


def test_threads_share_stemmers() -> None:
    words = [f"Häuser{n} brücken gekündigt" for n in range(200)]
    expected = [stems_of(text, "de") for text in words]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: stems_of(text, "de"), words)) == expected


def test_a_selector_takes_the_language_everywhere() -> None:
    question, answer, other = PASSAGES["de"]
    row = {"query": question, "passages": [other, answer], "language": "de"}
    (selection,) = shipped().select_many([row], k=1)
    assert selection.texts == (answer,)
    index = shipped().index(passages=[other, answer])
    for language in (None, "de", "nl", "en"):
        expected = shipped().select(question, [other, answer], k=2, language=language)
        found = index.select(question, k=2, language=language)
        assert (found.indices, found.gains) == (expected.indices, expected.gains)
    assert isinstance(expected, dgn.PassageSelection)
