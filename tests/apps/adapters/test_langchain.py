import asyncio
import copy

import pytest

pytest.importorskip("langchain_core", reason="dgn[langchain] is not installed")

from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from dgn import InvalidInput, Limits, Selector
from dgn.apps.adapters.langchain import DGNDocumentCompressor
from retrieved import QUERY, TEXTS, WANTED


class Fixed(BaseRetriever):
    """Retrieves what it was given."""

    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:  # noqa: ARG002
        return self.found


@pytest.fixture(scope="module")
def compressor() -> DGNDocumentCompressor:
    return DGNDocumentCompressor(k=2)


def documents() -> list[Document]:
    return [Document(text, id=str(i), metadata={"row": i}) for i, text in enumerate(TEXTS)]


def test_inside_a_contextual_compression_retriever(compressor: DGNDocumentCompressor) -> None:
    given = documents()
    before = copy.deepcopy(given)
    retriever = ContextualCompressionRetriever(
        base_compressor=compressor, base_retriever=Fixed(found=given)
    )
    found = retriever.invoke(QUERY)
    assert [document.metadata["row"] for document in found] == WANTED
    assert [document.id for document in found] == ["1", "3"]
    assert found[0].metadata["dgn_covers"] == ["bridge", "designed", "Clara", "Voss"]
    assert found[0].metadata["dgn_gain"] > found[1].metadata["dgn_gain"] > 0
    assert 0 < found[0].metadata["dgn_relevance"] <= 1
    assert given == before, "the retriever's documents were changed"
    assert asyncio.run(retriever.ainvoke(QUERY)) == found


def test_titles_scores_and_limits(compressor: DGNDocumentCompressor) -> None:
    titled = [Document("It is red.", metadata={"title": "Corran Bridge"}), Document("It is blue.")]
    found = compressor.compress_documents(titled, "Which colour is the Corran Bridge?")
    assert found[0].page_content == "It is red."
    scored = [Document(text, metadata={"s": float(i == 4)}) for i, text in enumerate(TEXTS)]
    with_scores = DGNDocumentCompressor(k=1, score_key="s", selector=compressor.selector)
    assert with_scores.compress_documents(scored, "Xyzzy?")[0].page_content == TEXTS[4]
    few = DGNDocumentCompressor(k=None, stop_at=0.5, selector=compressor.selector)
    assert len(few.compress_documents(documents(), QUERY)) == 1


def test_it_is_written_as_json_and_read_again() -> None:
    limits = {"k": 2, "score_weight": 0.5, "min_relevance": 0.01}
    made = DGNDocumentCompressor(model="untrained", title_key="name", **limits)
    written = made.model_dump_json()
    again = DGNDocumentCompressor.model_validate_json(written)
    assert (again.model, again.limits, again.title_key) == ("untrained", Limits(**limits), "name")
    assert again.model_dump_json() == written
    assert again.model_dump() == made.model_dump()
    found, same = (one.compress_documents(documents(), QUERY) for one in (made, again))
    assert found == same
    assert DGNDocumentCompressor.model_json_schema()["properties"]["limits"]["type"] == "object"


def test_a_function_is_left_out_of_the_json() -> None:
    made = DGNDocumentCompressor(max_tokens=5, count_tokens=len)
    assert made.limits.count_tokens is len
    again = DGNDocumentCompressor.model_validate_json(made.model_dump_json())
    assert again.limits == Limits(max_tokens=5)


def test_a_selector_without_a_name_is_never_read_as_the_default() -> None:
    own = Selector.from_pretrained("untrained")
    written = DGNDocumentCompressor(selector=own, k=1).model_dump_json()
    with pytest.raises(ValueError, match="a selector that has no name"):
        DGNDocumentCompressor.model_validate_json(written)
    named = DGNDocumentCompressor(selector=own, model="untrained").model_dump_json()
    again = DGNDocumentCompressor.model_validate_json(named)
    assert again.selector.encoder.parameters == 0


def test_scores(compressor: DGNDocumentCompressor) -> None:
    scored = [Document("Ada.", metadata={"s": 1.0}), Document("Bo."), Document("Cy.")]
    chosen = DGNDocumentCompressor(score_key="s", selector=compressor.selector)
    assert chosen.compress_documents(scored, "Who?")[0].page_content == "Ada."
    for key in ("other", "relevance_score"):
        none = DGNDocumentCompressor(use_scores=True, score_key=key, selector=compressor.selector)
        with pytest.raises(InvalidInput, match=f"No document has '{key}' in its metadata"):
            none.compress_documents(scored, "Who?")
    scored[1].metadata["s"] = "high"
    with pytest.raises(InvalidInput, match="finite numbers"):
        chosen.compress_documents(scored, "Who?")


def test_names_that_people_bring(compressor: DGNDocumentCompressor) -> None:
    few = DGNDocumentCompressor(top_n=2, selector=compressor.selector)
    assert len(few.compress_documents(documents(), QUERY)) == 2
    sources = ["a.pdf", "a.pdf", "a.pdf", "b.pdf", "b.pdf"]
    from_files = [
        Document(text, metadata={"source": source})
        for text, source in zip(TEXTS, sources, strict=True)
    ]
    each = DGNDocumentCompressor(max_per_document=1, selector=compressor.selector)
    found = each.compress_documents(from_files, QUERY)
    assert sorted(one.metadata["source"] for one in found) == ["a.pdf", "b.pdf"]
    assert "page_content" not in str(found[0].metadata)


def test_edges(compressor: DGNDocumentCompressor) -> None:
    assert compressor.compress_documents([], QUERY) == []
    with pytest.raises(ValueError, match="kk"):
        DGNDocumentCompressor(kk=2)
    with pytest.raises(InvalidInput, match="text with a word"):
        compressor.compress_documents(documents(), "?!")
