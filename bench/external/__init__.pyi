from .audit import Request as Request
from .audit import attack_folder as attack_folder
from .audit_request import LONGEST as LONGEST
from .audit_request import ModelRequest as ModelRequest
from .model_audit import audit_model as audit_model
from .outcome import Audit as Audit
from .recorder import Recorder as Recorder
