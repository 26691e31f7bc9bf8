"""Decides from words whether something holds wherever its author works. The one place that does. Pure.

A thing that happens "everywhere" or is installed "globally" tells nothing of its author's other projects, nor does a
sentence about all repositories of somebody else. What counts is a person who speaks of all of their own projects, in
the languages whose rules extraction knows. When in doubt, it holds in one project.
"""

from __future__ import annotations

import re
from functools import cache

from recollect.text import sentences

_PROJECTS = r"(?:projects?|repos?(?:itor(?:y|ies))?|codebases?)"
_I = r"(?:i|we)(?: (?:ever|also|may|might|happen to))?"
_IN_IT = rf"{_I}(?:'(?:m|re)| am| are| work| code| program| develop| write| build| touch| open| start| maintain)\b"
_WORK = rf"{_I} (?:work|code|program|develop)\b"
_PHRASES = (
    # English
    r"\b(?:all|every|each|any)(?: (?:single|one))?(?: of)? (?:my|our)(?: (?:own|other|work|private|personal))?"
    rf" (?:{_PROJECTS}|(?:conversation|session|chat)s?)\b",
    rf"\b(?:all|every|each|any|whichever|whatever)(?: of)?(?: the)? {_PROJECTS}"
    rf"(?: of (?:mine|ours)\b|(?: that| which)? {_IN_IT})",
    rf"\b(?:wherever|everywhere|anywhere|whatever) {_WORK}",
    rf"\b(?:in|for) everything (?:that )?{_I} (?:write|build|code)\b",
    rf"\b(?:no matter|regardless of) (?:where {_WORK}|(?:which|what) {_PROJECTS} {_IN_IT})",
    # German
    r"\ball(?:en?)? (?:meine[nr]?|unsere[nr]?) (?:projekten?|repos?(?:itor(?:y|ies))?)\b",
    r"\b(?:jede[mnrs]?|alle[nr]?) (?:meiner|unserer) (?:projekte|repos?)\b|\begal in welchem projekt (?:ich|wir)\b",
    r"\b(?:überall,? wo|wo (?:auch )?immer|egal,? wo) (?:ich|wir) (?:auch )?(?:arbeite|programmiere|entwickle)n?\b",
    # French
    r"\b(?:tous|toutes|chacun de) (?:mes|nos) (?:projets|dépôts|repos)\b",
    r"\b(?:partout où|où que|quel que soit le projet (?:où|sur lequel)) (?:je|nous|on) (?:travaill|cod|développ)\w+",
    # Spanish, Portuguese, Italian
    r"\b(?:todos|cada uno de|cualquiera de) (?:mis|nuestros) (?:proyectos|repos(?:itorios)?)\b",
    r"\b(?:donde ?(?:quiera|sea) que|en cualquier (?:lugar|sitio|proyecto) (?:donde|en (?:el )?que)) (?:yo )?trabaj",
    r"\b(?:todos os|cada um dos|qualquer um dos) (?:meus|nossos) (?:projetos|repositórios)\b",
    r"\bonde quer que (?:eu )?trabalh|\bovunque (?:io )?lavor",
    r"\b(?:tutti i|ognuno dei|ciascuno dei) (?:miei|nostri) (?:progetti|repository)\b",
    # Dutch, Swedish, Polish, Russian
    r"\bal (?:mijn|onze) (?:projecten|repo'?s)\b|\bwaar ik ook werk\b",
    r"\balla (?:mina|våra) (?:projekt|repon)\b|\bvar jag än (?:jobbar|arbetar)\b",
    r"\bwszystkich (?:moich|naszych) (?:projektach|repozytoriach)\b|\bgdziekolwiek pracuj",
    r"\bвсех (?:моих|наших) (?:проектах|репозиториях)|\bгде бы я ни работал",
    # Chinese, Japanese, Korean
    r"我们?的?(?:所有|全部|每个|每一个)的?(?:项目|仓库|代码库)|(?:所有|全部)我的(?:项目|仓库)",
    r"我們?的?(?:所有|全部|每個|每一個)的?(?:專案|項目|倉庫)|(?:所有|全部)我的(?:專案|項目|倉庫)",
    r"(?:私|僕|俺|自分)の(?:すべて|全て|全部|あらゆる|全)の?(?:プロジェクト|リポジトリ)",
    r"(?:すべて|全て|全部)の(?:私|僕|俺|自分)の(?:プロジェクト|リポジトリ)",
    r"(?:내|나의|제|저의|우리) (?:모든|전체) (?:프로젝트|저장소)|모든 (?:내|제) (?:프로젝트|저장소)",
)
_ALL = rf"\b(?:in|for|across|on) (?:all|every|each|any)(?: the)? {_PROJECTS}(?=\s*(?:[.,;:!]|$))"
_WISH = (  # without one, "in all repositories" is a fact about them
    r"\b(?:i|we)(?:'d)?(?: \w+ly| always| never| would| do not| don't)?"
    r" (?:want|prefer|like|love|hate|dislike|use|expect|need)\b"
)
_NOT = r"\b(?:not|nicht|pas|no|non|não|niet|inte|nie|не)(?: \w+)? ?$"  # before the phrase
_ONLY_HERE = (
    r"\b(?:only|just|nur|seulement|solo|só|soltanto) (?:in|for|für|dans|pour|en|para|em|per)"
    r" (?:this|diese[mrs]?|ce|este|quest[oa])\b|\bonly here\b"
)


def holds_everywhere(text: str) -> bool:
    """Does its author say that it holds in all of their projects?"""
    return any(map(_is_said, sentences(text.replace("’", "'"))))


def _is_said(sentence: str) -> bool:
    phrase, wide, wish, negation, only_here = _patterns()
    found = phrase.search(sentence) or (wide.search(sentence) if wish.search(sentence) else None)
    if found is None or sentence.endswith("?") or only_here.search(sentence):
        return False
    return negation.search(sentence[: found.start()]) is None


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    texts = ("|".join(_PHRASES), _ALL, _WISH, _NOT, _ONLY_HERE)
    return tuple(re.compile(each, re.IGNORECASE) for each in texts)
