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
_WORK = rf"{_I} (?:work|code|program|develop)\b(?! (?:on|with|in|at) (?:it|this|that|the|these|those)\b)"
_IN = r"\b(?:in|for|across|throughout|within|appl(?:y|ies) to)"
_MY = r"(?: (?:single|one))?(?: of)? (?:my|our)(?: (?:own|other|work|private|personal))?"
_END = r"(?=\s*(?:[.,;:!]|$))"
_PHRASES = (  # a page that lists "all my projects" says nothing of them: it takes a word for "in"
    # English
    rf"{_IN} (?:all|every|each|any){_MY} (?:{_PROJECTS}|(?:conversation|session|chat)s?)\b"
    r"(?! (?:pages?|views?|lists?|tabs?|tables?|folders?|screens?|sections?|menus?|panels?|buttons?|titles?|names?)\b)",
    rf"{_IN} (?:all|every|each|any|whichever|whatever)(?: of)?(?: the)? {_PROJECTS}"
    rf"(?: of (?:mine|ours)\b|(?: that| which)? {_IN_IT})",
    rf"(?:^|\b(?:i|we) want )(?:all|every|each){_MY} {_PROJECTS} (?:(?:to|must|should) )?(?:uses?|follows?)\b",
    rf"\b(?:wherever|everywhere|anywhere|whatever) {_WORK}",
    rf"\b(?:in|for) everything (?:that )?{_I} (?:write|build|code){_END}",
    rf"\b(?:no matter|regardless of) (?:where {_WORK}|(?:which|what) {_PROJECTS} {_IN_IT})",
    # German
    r"\b(?:in|für|bei) all(?:en?)? (?:meine[nr]?|unsere[nr]?) (?:projekten?|repos?(?:itor(?:y|ies))?)\b",
    r"\b(?:in|für|bei) (?:jede[mnrs]?|alle[nr]?) (?:meiner|unserer) (?:projekte|repos?)\b"
    r"|\begal in welchem projekt (?:ich|wir)\b",
    r"\b(?:überall,? wo|wo (?:auch )?immer|egal,? wo) (?:ich|wir) (?:auch )?(?:arbeite|programmiere|entwickle)n?\b",
    # French
    r"\b(?:dans|pour|sur) (?:tous|toutes|chacun de) (?:mes|nos) (?:projets|dépôts|repos)\b",
    r"\b(?:partout où|où que|quel que soit le projet (?:où|sur lequel)) (?:je|nous|on) (?:travaill|cod|développ)\w+",
    # Spanish, Portuguese, Italian
    r"\b(?:en|para) (?:todos|cada uno de|cualquiera de) (?:mis|nuestros) (?:proyectos|repos(?:itorios)?)\b",
    r"\b(?:donde ?(?:quiera|sea) que|en cualquier (?:lugar|sitio|proyecto) (?:donde|en (?:el )?que)) (?:yo )?trabaj",
    r"\b(?:em|para) (?:todos os|cada um dos|qualquer um dos) (?:meus|nossos) (?:projetos|repositórios)\b",
    r"\bonde quer que (?:eu )?trabalh|\bovunque (?:io )?lavor",
    r"\b(?:in|per) (?:tutti i|ognuno dei|ciascuno dei) (?:miei|nostri) (?:progetti|repository)\b",
    # Dutch, Swedish, Polish, Russian
    r"\b(?:in|voor) al (?:mijn|onze) (?:projecten|repo'?s)\b|\bwaar ik ook werk\b",
    r"\b(?:i|för) alla (?:mina|våra) (?:projekt|repon)\b|\bvar jag än (?:jobbar|arbetar)\b",
    r"\b(?:we|dla) wszystkich (?:moich|naszych) (?:projekt|repozytori)\w+|\bgdziekolwiek pracuj",
    r"\b(?:во|для) всех (?:моих|наших|своих) (?:проект|репозитори)\w+|\bгде бы я ни работал",
    # Arabic, Hindi
    r"(?:في|على|عبر) (?:كل|جميع) (?:مشاريعي|مشاريعنا)",
    r"(?:मेरे|हमारे|अपने) (?:सभी|सारे|हर) (?:प्रोजेक्ट|परियोजना)\S* (?:में|के लिए)",
    # Chinese, Japanese, Korean: the word for "in", or "all of them", stands behind it
    r"(?:我们?的?(?:所有|全部|每个|每一个)的?(?:项目|仓库|代码库)|(?:所有|全部)我的(?:项目|仓库))(?=[中里内都上,，])",
    r"(?:我們?的?(?:所有|全部|每個|每一個)的?(?:專案|項目|倉庫)|(?:所有|全部)我的(?:專案|項目|倉庫))(?=[中裡內都上,，])",
    r"我所有的(?:项目|仓库|代码库|專案|項目|倉庫)(?=[中里内裡內都上,，])",
    r"(?:(?:私|僕|俺|自分)の(?:すべて|全て|全部|あらゆる|全)の?|(?:すべて|全て|全部)の(?:私|僕|俺|自分)の)"
    r"(?:プロジェクト|リポジトリ)(?=で|にお|、)",
    r"(?:(?:내|나의|제|저의|우리) (?:모든|전체) (?:프로젝트|저장소)|모든 (?:내|제) (?:프로젝트|저장소))(?=에)",
)
_ALL = rf"\b(?:in|for|across) (?:all|every|each|any)(?: the)? {_PROJECTS}{_END}"
_HABIT = (  # without one, "in all repositories" is a fact about them, or asks for something in what is built
    r"\b(?:i|we)(?: (?:always|never|generally|usually|really|don't|do not))?"
    r" (?:(?:prefer|like|love|hate|dislike|use)\b(?! (?:a|an|the|this|that|to (?:see|have|show))\b))"
    r"|\b(?:i|we) (?:always|never) want\b"
)
_NOT = r"\b(?:not|nicht|pas|no|non|não|niet|inte|nie|не) ?$"  # before the phrase
_ONLY_HERE = (
    r"\b(?:only|just|nur|seulement|solo|só|soltanto) (?:in|for|für|dans|pour|en|para|em|per)"
    r" (?:this|diese[mrs]?|ce|este|quest[oa])\b|\bonly here\b"
)
_QUOTED = (
    r"[\"“„][^\"“”„]*[\"“”]|«[^«»]*»|`[^`]*`|(?<!\w)'[^']*'(?!\w)|[「『][^「『」』]*[」』]"  # a name that something has
)


def holds_everywhere(text: str) -> bool:
    """Does its author say that it holds in all of their projects?"""
    return any(map(_is_said, sentences(text.replace("’", "'"))))


def _is_said(sentence: str) -> bool:
    phrase, wide, habit, negation, only_here, quoted = _patterns()
    sentence = quoted.sub("", sentence)
    found = phrase.search(sentence) or (wide.search(sentence) if habit.search(sentence) else None)
    if found is None or sentence.endswith("?") or only_here.search(sentence):
        return False
    return negation.search(sentence[: found.start()]) is None


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    texts = ("|".join(_PHRASES), _ALL, _HABIT, _NOT, _ONLY_HERE, _QUOTED)
    return tuple(re.compile(each, re.IGNORECASE) for each in texts)
