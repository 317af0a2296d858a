# conf.py - Sphinx's settings; tools/docs/build sets LOCKSTEP_DOCS_LANGUAGE and LOCKSTEP_DOCS_VERSION and copies this beside a
# language's pages.
import importlib.util
import os
import re

from sphinx.search import SearchLanguage

project = "lockstep"
language = {"en": "en", "zh": "zh_CN"}[os.environ.get("LOCKSTEP_DOCS_LANGUAGE", "en")]
version = release = os.environ.get("LOCKSTEP_DOCS_VERSION", "")
extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_title = f"lockstep {version}".strip()
html_show_copyright = False
html_extra_path = ["pages"]
html_static_path = ["_static"]
html_css_files = ["lockstep.css"]
templates_path = ["_templates"]
html_sidebars = {"**": ["sidebar/brand.html", "sidebar/search.html", "language.html", "sidebar/scroll-start.html", "sidebar/navigation.html",
                        "sidebar/scroll-end.html"] if html_theme == "furo" else ["about.html", "language.html", "searchbox.html", "navigation.html"]}
exclude_patterns = ["parts", "examples", "cuda", "probe", "pages", "_templates", "_static"]
HAN = "\u3400-\u4dbf\u4e00-\u9fff"


class HanSearch(SearchLanguage):
    """Chinese has no spaces between words, and Sphinx's own search needs a dictionary for it: every two neighbouring characters are
    a word here, in the index and in what is looked for."""
    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = """
function splitQuery(query) {
  const words = [];
  for (const run of query.match(/[%s]+|\\w+/g) || []) {
    if (run.length < 2 || !/^[%s]/.test(run)) words.push(run);
    else for (let k = 0; k + 1 < run.length; ++k) words.push(run.slice(k, k + 2));
  }
  return words;
}
""" % (HAN, HAN)

    def split(self, input):
        words = []
        for run in re.findall(f"[{HAN}]+|[a-zA-Z0-9_]+", input):
            han = re.match(f"[{HAN}]", run)
            words += [*run, *(run[k : k + 2] for k in range(len(run) - 1))] if han else [run]
        return words

    def stem(self, word):
        return word.lower()

    def word_filter(self, word):
        return True


def setup(app):
    app.add_search_language(HanSearch)
