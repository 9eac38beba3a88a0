"""The ops of the dialect, one module per family, under the names of Apache TVM's Relax."""

from .binary import *  # noqa: F403
from .builtin import *  # noqa: F403
from .collective import *  # noqa: F403
from .creation import *  # noqa: F403
from .datatype import *  # noqa: F403
from .extern import *  # noqa: F403
from .indexing import *  # noqa: F403
from .io import *  # noqa: F403
from .linear_algebra import *  # noqa: F403
from .manipulate import *  # noqa: F403
from .nn import *  # noqa: F403
from .quantize import *  # noqa: F403
from .search import *  # noqa: F403
from .statistical import *  # noqa: F403
from .unary import *  # noqa: F403
from .vdevice import *  # noqa: F403
from .winograd import *  # noqa: F403
