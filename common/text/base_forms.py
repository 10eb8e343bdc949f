"""English words whose forms no ending tells: "written" is a form of "write". Pure data, read once.

Only forms that are nothing else: "left", "found", "saw", "lay" and their like mean something of their own and are not
here.
"""

from __future__ import annotations

__all__ = ["base_form"]

_FORMS = """
    become became; begin began begun; break broke broken; bring brought; build built; buy bought; catch caught;
    choose chose chosen; come came; deal dealt; draw drew drawn; drink drank drunk; drive drove driven; eat ate eaten;
    fall fell fallen; feed fed; fight fought; fly flew flown; forget forgot forgotten; forgive forgave forgiven;
    freeze froze frozen; get got gotten; give gave given; go went gone going;
    grow grew grown; hear heard; hide hid hidden;
    hold held; keep kept; know knew known; lead led; learn learnt; lend lent; lose lost; make made; mean meant;
    pay paid; ride rode ridden; run ran; say said; see seen; sell sold; send sent; shake shook shaken;
    sing sang sung; sink sank sunk; sleep slept; speak spoke spoken; spend spent; stand stood; steal stole stolen;
    swim swam swum; take took taken; teach taught; tell told; think thought; throw threw thrown;
    understand understood; use used using; wake woke woken; wear wore worn; win won; write wrote written
"""
_BASES = {form: base for base, *forms in (verb.split() for verb in _FORMS.split(";")) for form in forms}


def base_form(word: str) -> str:
    """The verb of which `word`, lower case, is an irregular form; else `word` itself."""
    return _BASES.get(word, word)
