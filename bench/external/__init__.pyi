from .audit import Request as Request
from .audit import attack_folder as attack_folder
from .outcome import Audit as Audit
from .recorder import Recorder as Recorder
