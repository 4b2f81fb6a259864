"""The public sets that `fetch` knows: where each lies, under which licence, whom to cite, what its files hold.

Addresses on GitHub name a commit, so that their content cannot change; `sha256` is given only where somebody computed
it from the whole file.  A part with several addresses is asked at each in turn (its home first).  Licences are what
the homes state; where a home states none, that is said, and the set is for your own measurements only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from core.data.public_sets import asset, data_to_text, newsroom, qags, summeval, usr, webnlg
from core.data.public_sets.reading import Format
from core.data.public_sets.rows import Converter
from core.errors import UsageError

_RAW = "https://raw.githubusercontent.com"
_UNIEVAL = f"{_RAW}/maszhongming/UniEval/9d9b51dc716f40f6b454a4455c7fe2f843aabfbb/reproduce/data"
_QAGS = f"{_RAW}/W4ngatang/qags/07449840cc46a1980b4623644cff726b4fa4a371/data"
_EMNLP = f"{_RAW}/jeknov/EMNLP_17_submission/1844d1b3573012d8dabb57f1c53da80777a77e9c/emnlp_data_medians.csv"
_NEWSROOM = f"{_RAW}/lil-lab/newsroom"
_WEBNLG = f"{_RAW}/abevieiramota/challenge-webnlg/358f984f2fc48eadea33a3ea6ba1901a0e7463ad/data/webnlg2017"
_COMMIT = re.compile(r"/[0-9a-f]{40}/")
_NONE_STATED = "none stated"


@dataclass(frozen=True)
class Part:
    """One file of a set: what it is for (`role`), its name, its addresses in the order to try, and its shape."""

    role: str
    file: str
    addresses: tuple[str, ...]
    kind: Format
    columns: tuple[str, ...]
    max_mb: int = 50
    sha256: str | None = None
    optional: bool = False  # a file given by hand may come without this one

    @property
    def max_bytes(self) -> int:
        """The largest size accepted."""
        return self.max_mb * 1_000_000


def is_pinned(address: str) -> bool:
    """Whether the address names a commit, so that its content cannot change under it."""
    return bool(_COMMIT.search(address))


@dataclass(frozen=True)
class Benchmark:
    """A public set of texts that people rated; `n_items` and `n_sources` are what the whole set gives."""

    name: str
    title: str
    task: str
    aspects: tuple[str, ...]
    scale: str
    n_items: int
    n_sources: int
    home: str
    licence: str
    citation: str
    parts: tuple[Part, ...]
    convert: Converter

    def as_json(self) -> dict[str, Any]:
        """What ``fetch --list --json`` tells."""
        return {
            "name": self.name,
            "title": self.title,
            "task": self.task,
            "aspects": list(self.aspects),
            "scale": self.scale,
            "n_items": self.n_items,
            "n_sources": self.n_sources,
            "home": self.home,
            "licence": self.licence,
            "citation": self.citation,
            "files": [
                {
                    "file": part.file,
                    "addresses": list(part.addresses),
                    "format": part.kind,
                    "columns": list(part.columns),
                    "sha256": part.sha256,
                    "pinned": [is_pinned(address) for address in part.addresses],
                    "optional": part.optional,
                }
                for part in self.parts
            ],
        }


def find_benchmark(name: str) -> Benchmark:
    """The set called `name` (case, ``-`` and ``_`` do not matter); UsageError names the known ones."""
    wanted = name.strip().lower().replace("_", "-")
    for benchmark in CATALOGUE:
        if benchmark.name == wanted:
            return benchmark
    known = ", ".join(benchmark.name for benchmark in CATALOGUE)
    raise UsageError(f"There is no benchmark {name!r}; known are {known}.")


def _usr(name: str, title: str, prefix: str, *, n_items: int, file: str, copy: str) -> Benchmark:
    columns = ("context", "fact", "annotators", "responses")
    addresses = (f"https://shikib.com/{file}", f"{_RAW}/{copy}")
    return Benchmark(
        name=name,
        title=title,
        task="dialogue response",
        aspects=tuple(usr.ASPECTS),
        scale="0-1, 1-3, 1-5",
        n_items=n_items,
        n_sources=60,
        home="https://github.com/Shikib/usr",
        licence=_NONE_STATED,
        citation="Mehri, S. and Eskenazi, M. (2020): USR: An Unsupervised and Reference Free Evaluation Metric for "
        "Dialog Generation. ACL.",
        parts=(Part("dialogues", file, addresses, "json", columns, max_mb=10),),
        convert=partial(usr.convert, prefix=prefix),
    )


def _qags(name: str, title: str, prefix: str, *, n_items: int, file: str, system: str) -> Benchmark:
    return Benchmark(
        name=name,
        title=title,
        task="factual consistency of summaries",
        aspects=("consistency",),
        scale="0-1",
        n_items=n_items,
        n_sources=n_items,
        home="https://github.com/W4ngatang/qags",
        licence=_NONE_STATED,
        citation="Wang, A., Cho, K. and Lewis, M. (2020): Asking and Answering Questions to Evaluate the Factual "
        "Consistency of Summaries. ACL.",
        parts=(Part("votes", file, (f"{_QAGS}/{file}",), "jsonl", ("article", "summary_sentences"), max_mb=10),),
        convert=partial(qags.convert, prefix=prefix, system=system),
    )


def _data_to_text(name: str, domain: str, n_items: int, n_sources: int) -> Benchmark:
    texts = ("source", "reference", "system_output", "scores")
    metrics = ("dataset", "system", "mr", "sys_ref", *data_to_text.METRICS, *data_to_text.ASPECTS)
    return Benchmark(
        name=name,
        title=f"{name.upper()} ({domain})",
        task="data-to-text",
        aspects=tuple(data_to_text.ASPECTS),
        scale="1-6",
        n_items=n_items,
        n_sources=n_sources,
        home="https://github.com/jeknov/EMNLP_17_submission",
        licence="MIT (both repositories)",
        citation="Novikova, J., Dušek, O., Cercas Curry, A. and Rieser, V. (2017): Why We Need New Evaluation Metrics "
        "for NLG. EMNLP. Systems: Wen, T.-H. et al. (2015): Semantically Conditioned LSTM-based Natural Language "
        "Generation for Spoken Dialogue Systems. EMNLP. Texts: Zhong, M. et al. (2022), UniEval.",
        parts=(
            Part("texts", f"{name}.json", (f"{_UNIEVAL}/data2text/{name}.json",), "json", texts, max_mb=10),
            Part("metrics", "emnlp_data_medians.csv", (_EMNLP,), "csv", metrics, max_mb=10, optional=True),
        ),
        convert=partial(data_to_text.convert, prefix=name, dataset=name.upper()),
    )


_SUMMEVAL: Final = Benchmark(
    name="summeval",
    title="SummEval",
    task="summarization (CNN/DailyMail)",
    aspects=(*summeval.ASPECTS, "overall"),
    scale="1-5",
    n_items=1600,
    n_sources=100,
    home="https://github.com/Yale-LILY/SummEval",
    licence="MIT (both repositories); the articles belong to their publishers",
    citation="Fabbri, A. R., Kryściński, W., McCann, B., Xiong, C., Socher, R. and Radev, D. (2021): SummEval: "
    "Re-evaluating Summarization Evaluation. TACL 9. Texts: Zhong, M. et al. (2022): Towards a Unified "
    "Multi-Dimensional Evaluator for Text Generation (UniEval). EMNLP.",
    parts=(
        Part(
            "texts",
            "summeval.json",
            (f"{_UNIEVAL}/summarization/summeval.json",),
            "json",
            ("doc_id", "system_id", "source", "reference", "system_output", "scores"),
        ),
        Part(
            "ratings",
            "model_annotations.aligned.jsonl",
            ("https://storage.googleapis.com/sfr-summarization-repo-research/model_annotations.aligned.jsonl",),
            "jsonl",
            ("id", "model_id", "references", "expert_annotations", "turker_annotations"),
            optional=True,
        ),
    ),
    convert=summeval.convert,
)

_NEWSROOM_SET: Final = Benchmark(
    name="newsroom",
    title="Newsroom human evaluation",
    task="summarization (news)",
    aspects=newsroom.ASPECTS,
    scale="1-5",
    n_items=420,
    n_sources=60,
    home="https://github.com/lil-lab/newsroom",
    licence="Apache-2.0 (the repository); the articles belong to their publishers",
    citation="Grusky, M., Naaman, M. and Artzi, Y. (2018): Newsroom: A Dataset of 1.3 Million Summaries with Diverse "
    "Extractive Strategies. NAACL.",
    parts=(
        Part(
            "ratings",
            "newsroom-human-eval.csv",
            tuple(
                f"{_NEWSROOM}/{tree}/humaneval/newsroom-human-eval.csv"
                for tree in ("4551c77eaecf785a797b86292978fb05b719eb89", "master")
            ),
            "csv",
            (
                *("ArticleID", "System", "ArticleText", "SystemSummary", "ArticleTitle"),
                *(f"{aspect.capitalize()}Rating" for aspect in newsroom.ASPECTS),
            ),
        ),
    ),
    convert=newsroom.convert,
)

_WEBNLG_SET: Final = Benchmark(
    name="webnlg",
    title="WebNLG 2017 human evaluation",
    task="data-to-text (triples)",
    aspects=tuple(webnlg.ASPECTS),
    scale="1-3",
    n_items=2230,
    n_sources=223,
    home="https://gitlab.com/webnlg/webnlg-human-evaluation",
    licence="CC BY-NC-SA 4.0 (as stated by the copy that is fetched)",
    citation="Shimorina, A., Gardent, C., Narayan, S. and Perez-Beltrachini, L. (2018): WebNLG Challenge: Human "
    "Evaluation Results. Technical report, LORIA.",
    parts=(
        Part(
            "ratings",
            "all_data_final_scores_anonymised.csv",
            (f"{_WEBNLG}/webnlg-human-evaluation-master/all_data_final_scores_anonymised.csv",),
            "csv",
            (
                *("X_worker_id", "mr", "team", "text", "category", "type", "systemtype"),
                *webnlg.ASPECTS.values(),
                *webnlg.METRICS,
            ),
            max_mb=10,
        ),
    ),
    convert=webnlg.convert,
)

_ASSET_SET: Final = Benchmark(
    name="asset",
    title="ASSET human ratings",
    task="sentence simplification",
    aspects=asset.ASPECTS,
    scale="0-100",
    n_items=100,
    n_sources=100,
    home="https://github.com/facebookresearch/asset",
    licence="CC BY-NC 4.0",
    citation="Alva-Manchego, F., Martin, L., Bordes, A., Scarton, C., Sagot, B. and Specia, L. (2020): ASSET: A "
    "Dataset for Tuning and Evaluation of Sentence Simplification Models with Multiple Rewriting Transformations. ACL.",
    parts=(
        Part(
            "ratings",
            "human_ratings.csv",
            (
                f"{_RAW}/facebookresearch/asset/9237187db72530d5cd53c5f7e15db3a3064ae077/human_ratings/human_ratings.csv",
            ),
            "csv",
            ("original", "simplification", "original_sentence_id", "aspect", "worker_id", "rating"),
            max_mb=10,
        ),
    ),
    convert=asset.convert,
)

_TOPICAL_COPY = (
    "SmartDataAnalytics/proxy_indicators/5017317f0d03cdbc64a3a52c09fc0a6bf5c492b3/data/usr_topical_chat.json"
)
_PERSONA_COPY = "daqh/llm-eval/a898596136035a0ed80300ddaecde3d0af72ea18/pc_usr_data.json"

CATALOGUE: Final[tuple[Benchmark, ...]] = (
    _SUMMEVAL,
    _NEWSROOM_SET,
    _qags("qags-cnndm", "QAGS CNN/DailyMail", "qc", n_items=235, file="mturk_cnndm.jsonl", system="bottom-up"),
    _qags("qags-xsum", "QAGS XSUM", "qx", n_items=239, file="mturk_xsum.jsonl", system="bart"),
    _data_to_text("sfres", "restaurants", 1181, 580),
    _data_to_text("sfhot", "hotels", 875, 398),
    _usr("topical-chat", "USR Topical-Chat", "tc", n_items=360, file="tc_usr_data.json", copy=_TOPICAL_COPY),
    _usr("persona-chat", "USR Persona-Chat", "pc", n_items=300, file="pc_usr_data.json", copy=_PERSONA_COPY),
    _WEBNLG_SET,
    _ASSET_SET,
)
