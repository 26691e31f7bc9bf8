"""What a statement is about, by the words it uses: the headings of the handbook. Pure; a table and a vote."""

from __future__ import annotations

from recollect.text import content_words

GENERAL = "General"

_WORDS = {
    "Testing": "test tests testing pytest unittest jest vitest fixture fixtures mock mocks coverage assertion flaky "
    "hypothesis regression suite spec e2e playwright",
    "Code style": "style format formatter formatting lint linter ruff black prettier eslint naming docstring comment "
    "comments indent indentation tabs spaces typing types mypy refactor readable convention import imports",
    "Version control": "git commit commits branch branches merge rebase squash pull push remote tag changelog "
    "worktree main master diff review reviewer",
    "Build and dependencies": "build builds package packages dependency dependencies pip uv npm pnpm yarn cargo poetry "
    "wheel lockfile makefile make compile compiler bundle webpack vite version upgrade pinned requirements venv",
    "Deployment and CI": "deploy deploys deployment deployed release releases ci cd pipeline workflow docker container "
    "kubernetes helm terraform staging production rollback server cluster nginx actions runner",
    "Data and storage": "database databases db sql sqlite postgres postgresql mysql redis query queries table tables "
    "schema migration migrations index transaction cache storage bucket backup column row",
    "Interfaces": "api apis endpoint endpoints http rest graphql grpc request requests response route routes webhook "
    "client json protocol header status pagination",
    "User interface": "ui ux frontend component components react vue css button page layout design screen dark "
    "theme form modal accessibility browser",
    "Security": "security secret secrets token tokens password passwords auth authentication login oauth permission "
    "permissions encrypt encryption certificate tls vulnerability credential credentials key keys",
    "Performance": "performance slow fast faster latency memory cpu benchmark profile profiling timeout timeouts "
    "throughput concurrency parallel async thread threads leak load",
    "Errors and debugging": "error errors exception exceptions crash crashes bug bugs fix fixed failure fails failed "
    "traceback log logs logging debug debugging retry",
    "Documentation": "docs documentation readme guide tutorial example examples changelog wiki markdown diagram",
    "Working together": "answer answers reply explain language english german tone short concise ask asks confirm "
    "question plan meeting team deadline customer",
}
TOPICS = (*_WORDS, GENERAL)

_TOPICS = {topic: content_words(text) for topic, text in _WORDS.items()}


def topic(text: str) -> str:
    """The topic with the most of its words in the text, the first of equals."""
    said = content_words(text)
    votes = {name: len(said & known) for name, known in _TOPICS.items()}
    best = max(votes, key=lambda name: votes[name])
    return best if votes[best] else GENERAL
