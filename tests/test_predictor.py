"""One predictor for all front ends: the same options, the same threshold, the same abstention."""

import pytest

from redraft import Example, PredictOptions, Predictor, RetrieveAndEdit
from redraft.editing.proposals import STORED_CONFIDENCE
from redraft.errors import ConfigError
from redraft.predictor import OptionError
from tests.greetings import greeter
from tests.shop import UNKNOWN, shop, shopkeeper

OTHER = "how many customers in Havana"


@pytest.fixture(scope="module")
def model() -> RetrieveAndEdit:
    return shopkeeper()


def test_without_a_threshold_nothing_is_abstained_from(model: RetrieveAndEdit) -> None:
    prediction = Predictor(model).predict_one(UNKNOWN)
    assert not prediction.abstains
    assert prediction.output == prediction.ranked[0].output
    assert "abstained" not in prediction.to_json(explain=False)


def test_the_model_abstains_below_the_least_confidence(model: RetrieveAndEdit) -> None:
    sure, unsure = Predictor(model, PredictOptions(min_confidence=0.5)).predict([OTHER, UNKNOWN])
    assert not sure.abstains
    assert sure.output == "SELECT COUNT(*) FROM customers WHERE city = 'Havana'"
    assert unsure.abstains
    assert unsure.output is None
    assert unsure.ranked
    row = unsure.to_json(explain=False)
    assert (row["output"], row["abstained"]) == (None, True)
    assert row["candidates"][0]["unfamiliar"] is True


def test_a_precision_becomes_the_threshold_of_the_held_out_pairs(model: RetrieveAndEdit) -> None:
    predictor = Predictor(model, PredictOptions(precision=0.9))
    confidence = model.editor.confidence  # type: ignore[attr-defined]
    assert predictor.threshold == confidence.threshold(0.9)
    kept = [right for value, right in confidence.held_out if value >= predictor.threshold]
    assert sum(kept) >= 0.9 * len(kept) > 0


@pytest.mark.parametrize("threshold", [0.5, 0.9, STORED_CONFIDENCE])
def test_stored_inputs_are_answered_at_any_threshold_up_to_theirs(
    threshold: float, model: RetrieveAndEdit
) -> None:
    predictor = Predictor(model, PredictOptions(min_confidence=threshold))
    for example, prediction in zip(
        shop(), predictor.predict([example.x for example in shop()]), strict=True
    ):
        assert prediction.output == example.y
        assert prediction.confidence == STORED_CONFIDENCE


def test_texts_and_fields_are_the_same_input(model: RetrieveAndEdit) -> None:
    predictor = Predictor(model, PredictOptions(k=3))
    assert predictor.fields == ["text"]
    text, fields = predictor.predict([OTHER, {"text": OTHER}])
    assert text.x == fields.x == {"text": OTHER}
    assert text.ranked == fields.ranked
    assert 1 < len(text.ranked) <= 3


def test_given_prototypes_are_edited(model: RetrieveAndEdit) -> None:
    prototypes = model.retriever.retrieve([{"text": "open tickets in Oslo"}], 1)
    [prediction] = Predictor(model, PredictOptions(min_confidence=0)).edit([OTHER], prototypes)
    assert prediction.ranked[0].prototype == prototypes[0][0]
    assert prediction.threshold == 0


def test_samples_of_one_seed_are_equal(model: RetrieveAndEdit) -> None:
    predictor = Predictor(model, PredictOptions(k=2))
    assert predictor.sample([OTHER], seed=1) == predictor.sample([OTHER], seed=1)


@pytest.mark.parametrize("option", ["min_confidence", "precision"])
def test_a_model_without_confidence_names_the_option(option: str) -> None:
    verbatim = RetrieveAndEdit.fit(shop(), retriever="lexical", editor="verbatim")
    few = RetrieveAndEdit.fit(shop()[:4], editor="choosing")
    options = PredictOptions(**{option: 0.5})  # type: ignore[arg-type]
    for unsure, reason in (
        (verbatim, "the verbatim editor has no confidence"),
        (few, "this model has no calibrated confidence; fit it again on 20 pairs or more"),
    ):
        with pytest.raises(OptionError, match=reason) as caught:
            Predictor(unsure, options)
        assert caught.value.field == option


@pytest.mark.parametrize("option", ["min_confidence", "precision"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_thresholds_are_between_zero_and_one(option: str, value: float) -> None:
    with pytest.raises(OptionError, match="is not between 0 and 1") as caught:
        PredictOptions(**{option: value})  # type: ignore[arg-type]
    assert caught.value.field == option


def test_both_thresholds_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="min_confidence and precision exclude each other"):
        PredictOptions(min_confidence=0.5, precision=0.5)


def test_decoding_needs_an_editor_that_decodes(model: RetrieveAndEdit) -> None:
    with pytest.raises(OptionError, match="this model has the choosing one") as caught:
        Predictor(model, PredictOptions(decoding={"beam_size": 2}))
    assert caught.value.field == "beam"
    assert Predictor(greeter(), PredictOptions(decoding={"beam_size": 2})).options.k == 1


def test_a_filter_restricts_the_prototypes() -> None:
    marked = [Example(pair.x, pair.y, {"half": i % 2}) for i, pair in enumerate(shop())]
    model = RetrieveAndEdit.fit(marked, editor="choosing")
    [prediction] = Predictor(model, PredictOptions(k=5, where={"half": 1})).predict([OTHER])
    for candidate in prediction.ranked:
        assert candidate.prototype is not None
        assert candidate.prototype.example.meta == {"half": 1}
