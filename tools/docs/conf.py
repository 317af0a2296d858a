# conf.py - Sphinx's settings; tools/docs/build sets LOCKSTEP_DOCS_LANGUAGE and copies this beside a language's pages.
import importlib.util
import os

project = "lockstep"
language = {"en": "en", "zh": "zh_CN"}[os.environ.get("LOCKSTEP_DOCS_LANGUAGE", "en")]
extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_title = "lockstep"
html_show_copyright = False
exclude_patterns = ["parts", "examples"]
