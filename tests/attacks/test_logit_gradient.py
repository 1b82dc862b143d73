"""Labels from the gradient of the logits."""

from __future__ import annotations

from cells import leak_of, run

from defenses.frozen import Frozen
from defenses.none import NoDefense
from defenses.sap import SAP


def test_logit_gradient_reads_every_label_under_sap_and_has_no_channel_elsewhere(tmp_path):
    split, none, frozen = run(tmp_path, SAP(eta=50), NoDefense(), Frozen())
    assert leak_of(split, "logit-gradient", goal="label").success.value >= 0.99
    for record in (none, frozen):
        leak = leak_of(record, "logit-gradient", view="", goal="label")
        assert leak.status == "skipped"
        assert "does not send logit-gradients" in leak.reason
