"""From which words something holds in all projects of a person."""

from __future__ import annotations

import pytest

from recollect.everywhere import holds_everywhere


@pytest.mark.parametrize(
    "text",
    [
        "In all my projects, use British spelling.",
        "Use tabs in every project of mine.",
        "We use tabs in all our projects.",
        "I prefer tabs in every project.",
        "Wherever I work, commit messages are in English.",
        "No matter which project I'm in, never push to main.",
        "Never force-push in any repo that I touch.",
        "Answer briefly. This goes for all of my repositories.",
        "In all meinen Projekten bitte keine Emojis.",
        "In jedem meiner Projekte nutze ich Tabs.",
        "Überall, wo ich arbeite, gilt: erst Tests.",
        "Dans tous mes projets, écris les commits en anglais.",
        "Partout où je travaille, pas d'emojis.",
        "En todos mis proyectos uso tabuladores.",
        "Em todos os meus projetos, use tabs.",
        "In tutti i miei progetti uso le tabulazioni.",
        "In al mijn projecten gebruik ik tabs.",
        "I alla mina projekt använder jag tabbar.",
        "We wszystkich moich projektach używam tabulatorów.",
        "Во всех моих проектах используй табы.",
        "在我的所有项目中都用制表符。",
        "私のすべてのプロジェクトではタブを使う。",
        "내 모든 프로젝트에서 탭을 사용해.",
        "मेरे सभी प्रोजेक्ट में टैब का उपयोग करो।",
        "في كل مشاريعي استخدم المسافات",
        "All my projects use tabs.",
        "I want all our repos to follow semantic versioning.",
        "This applies to all my projects: no emojis.",
        "In all my projects, write `const` and not 'let'.",
    ],
)
def test_a_person_who_speaks_of_all_their_projects_means_all_of_them(text: str) -> None:
    assert holds_everywhere(text)


@pytest.mark.parametrize(
    "text",
    [
        "Don't install npm packages globally.",
        "Dark mode has to work everywhere.",
        "Use British spelling everywhere.",
        "We say workspace everywhere in the UI.",
        "Log in every service, everywhere.",
        "Dependabot is enabled in all repositories.",
        "The token is shared across all projects of the organisation.",
        "Every project view has to load within a second.",
        "Works in any project folder.",
        "Not in all my projects, only here.",
        "Don't do that in all my projects, only in this repo.",
        "Should I use tabs in all my projects?",
        "Whatever I do, the build fails.",
        "Everywhere I look there are warnings.",
        "Die Schrift muss überall gleich sein.",
        "Le thème sombre doit marcher partout.",
        "El modo oscuro tiene que funcionar en todas partes.",
        "そのテーマはどこでも動く必要がある。",
        # of something that is built, and knows projects itself
        "The page 'All my projects' must load fast.",
        'Every user can say "in all my projects" here.',
        "Users see all my projects in the sidebar.",
        "All our projects table needs an index.",
        "In all our projects lists, sort by name.",
        "Show a badge in all my projects view.",
        "Delete all my projects from the demo account.",
        "I want the export button in all projects.",
        "I'd like the export button in every project.",
        "We need a filter for all projects.",
        "Count the stars of all my repos.",
        "Show every project that I am assigned to.",
        "Wherever I work on this page, the cursor jumps.",
        "In everything we write to the log, mask tokens.",
        "Alle meine Projekte sollen auf der Startseite stehen.",
        "Affiche tous mes projets sur la page d'accueil.",
        "Mostrar todos mis proyectos en la página.",
        "Todos os meus projetos devem aparecer no menu.",
        "Показывай все мои проекты в меню.",
        "我的所有项目页面加载太慢。",
        "私のすべてのプロジェクトページが遅い。",
    ],
)
def test_everywhere_and_globally_say_nothing_of_other_projects(text: str) -> None:
    assert not holds_everywhere(text)
