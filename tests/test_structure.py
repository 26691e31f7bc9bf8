"""A session without a model: what was done and left, by events and the agent's last words, and what is kept of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.authors import coded, written
from recollect.extract import session, structure
from recollect.extract.offline.strategy import Offline, told
from recollect.extract.values import Extraction
from recollect.ingest.sources import events
from recollect.standing import asks_to_keep
from recollect.text import estimate_tokens
from recollect.types import BINDING, Author, Event, Happened, MemoryKind, Message, Role, Scope, Severity, Trust

NUMBERS = count()


def outcome(messages: Sequence[Message]) -> tuple[str, str]:
    return structure.outcome(session.read(messages))


def account(messages: Sequence[Message]) -> str:
    return structure.account(session.read(messages))


def requests(messages: Sequence[Message]) -> list[str]:
    return structure.requests(session.read(messages))


def sentence(messages: Sequence[Message], project: str) -> str:
    return structure.sentence(session.read(messages), project)


def person(text: str, *happened: Event) -> Message:
    """What the person typed."""
    return Message(f"u{next(NUMBERS)}", Role.USER, text, authors=coded([(Author.TYPED, len(text))]), events=happened)


def sent(text: str) -> Message:
    """What the person sent: what is typed of it is told by its form."""
    return Message(f"u{next(NUMBERS)}", Role.USER, text, authors=written(text))


def chosen(text: str, *happened: Event) -> Message:
    """What the person said in answer to the agent."""
    return Message(f"u{next(NUMBERS)}", Role.USER, text, authors=f"{Author.CHOSEN}:{len(text)}", events=happened)


def agent(text: str, *calls: str, happened: tuple[Event, ...] = ()) -> Message:
    """Words of the agent, and a line per tool call."""
    lines = "\n".join(calls)
    whole = "\n\n".join(filter(None, (text, lines)))
    authors = coded([(Author.AGENT, len(whole) - len(lines)), (Author.TOOL, len(lines))])
    return Message(f"a{next(NUMBERS)}", Role.ASSISTANT, whole, authors=authors, events=happened)


def called(name: str, **arguments: object) -> Message:
    """A message of the agent that only calls a tool, with what that tells."""
    return agent(
        "", f"[{name}] {arguments.get('command', '')}".strip(), happened=events.told(name, json.dumps(arguments))
    )


def done(*messages: Message) -> str:
    return outcome(messages)[0]


def left(*messages: Message) -> str:
    """What is left, but for what nobody committed."""
    return re.sub(r" ?No commit in this session: `[^`]*`(?:, `[^`]*`|, \d+ more)*\.", "", outcome(messages)[1]).strip()


def kept(*messages: Message) -> list[str]:
    return [each.text for each in structure.statements(messages)]


ASKED = person("Please fix the flaky checkout tests in the shop repository.")
FIXED = agent("The checkout tests pass now, because each suite has a cart of its own.", "[Edit] tests/checkout.spec.ts")
ENDED = agent("That is all for today.")
COMMIT = """git add -A && git commit -m "$(cat <<'EOF'
Give each suite a cart of its own

Two suites shared one cart, and \\"empty\\" carts were not.

Co-Authored-By: A Model <noreply@example.com>
EOF
)" """


# What was done


def test_the_outcome_tells_what_was_asked_and_what_came_of_it() -> None:
    told = done(ASKED, agent("I'll look at the tests.", "[Read] src/checkout.ts"), FIXED)
    assert told == (
        "Asked: Please fix the flaky checkout tests in the shop repository. The checkout tests pass now, because each"
        " suite has a cart of its own. Edited `checkout.spec.ts`."
    )


def test_the_message_of_a_commit_is_told_also_from_a_heredoc() -> None:
    talk = (ASKED, FIXED, called("Bash", command=COMMIT))
    assert done(*talk).endswith("Committed: Give each suite a cart of its own.")
    assert "Edited" not in done(*talk), "the commit says so"
    assert "Two suites shared one cart" in account(talk) and "Co-Authored-By" not in account(talk)


def test_the_last_commits_and_pull_request_are_told_and_the_others_counted() -> None:
    commits = [called("Bash", command=f'git commit -m "Change number {n}"') for n in range(7)]
    told = done(ASKED, *commits, called("Bash", command='gh pr create --title "Mend the tests" --body "All of them"'))
    assert "Change number 3; Change number 4; Change number 5; Change number 6 and 3 more." in told
    assert told.endswith("Pull request: Mend the tests.") and "Change number 2" not in told


def test_where_nothing_was_done_there_is_no_outcome() -> None:
    assert outcome([ASKED, agent("I'll look at the tests.", "[Read] src/checkout.ts")]) == ("", "")
    assert account([ASKED, agent("Sure, on it.")]) == "" and outcome([]) == ("", "") and account([]) == ""


def test_the_agents_last_words_count_and_not_what_it_says_on_the_way() -> None:
    way = agent("The first suite seems to leave its cart behind for the second.", "[Bash] npm test")
    assert "leave its cart" not in done(ASKED, way, FIXED) and "a cart of its own" in done(ASKED, way, FIXED)
    chatter = agent("Let me know what you think. Would you like me to refactor the helper as well?")
    assert "refactor" not in "".join(outcome([ASKED, FIXED, person("thanks, that is great news"), chatter]))


def test_what_was_asked_is_the_first_and_the_last_of_many_requests() -> None:
    asks = [
        person(f"please add a page about {name} to the docs") for name in ("tides", "winds", "locks", "fees", "quays")
    ]
    assert requests(asks) == [asks[0].text, asks[2].text, asks[3].text, asks[4].text]
    assert requests([person("/compact please and go on"), person("ok"), person("go on then")]) == []


def test_a_plan_that_is_handed_over_is_asked_for_by_its_heading() -> None:
    plan = "Implement the following plan:\n\n# Plan: Cache the tide tables\n\nNever ask the office twice."
    handed = sent(plan)
    assert requests([handed]) == ["Implement the plan: Cache the tide tables"]
    assert kept(handed) == [], "a client wrote it"


def test_a_request_without_spaces_between_its_words_is_one_too() -> None:
    asked = person("帮我把结账测试修好，它们经常失败。")
    assert requests([asked]) == [asked.text]
    assert left(FIXED, asked) == f"Unanswered: {asked.text}"


def test_what_was_pasted_asks_for_nothing() -> None:
    pasted = Message("u", Role.USER, "The reviewer wants the cache removed.", authors="pasted:37")
    assert requests([pasted]) == [] and left(FIXED, pasted) == ""


# What was left


def test_tasks_that_were_opened_and_not_done_are_left() -> None:
    first = called(
        "TodoWrite", todos=[{"content": "Split the cart", "status": "pending"}, {"content": "Cover refunds"}]
    )
    assert left(ASKED, first, FIXED) == "Open tasks: Split the cart; Cover refunds."
    then = called(
        "TodoWrite", todos=[{"content": "Split the cart", "status": "completed"}, {"content": "Cover refunds"}]
    )
    assert left(ASKED, first, then, FIXED) == "Open tasks: Cover refunds."
    other = called("TodoWrite", todos=[{"content": "Split the cart", "status": "completed"}, {"content": "Name it"}])
    assert left(ASKED, first, other, FIXED) == "Open tasks: Name it.", "a list replaces the one before it"


def test_a_task_that_is_named_by_its_number_is_done() -> None:
    opened = [called("TaskCreate", subject=name) for name in ("Split the cart", "Cover refunds")]
    closed = called("TaskUpdate", taskId="1", status="completed")
    assert left(ASKED, *opened, closed, FIXED) == "Open tasks: Cover refunds."
    every = [closed, called("TaskUpdate", taskId="2", status="deleted")]
    assert left(ASKED, *opened, *every, FIXED) == ""


def test_a_call_that_failed_opens_no_task_and_commits_nothing() -> None:
    failed = agent("", "[Bash] git commit -m x (failed)")
    assert "Committed" not in done(ASKED, FIXED, failed)


def test_edits_after_the_last_commit_are_not_committed() -> None:
    more = agent("", "[Edit] src/cart.ts", "[Write] docs/carts.md", "[Edit] src/other.ts (failed)")
    assert left(ASKED, FIXED, called("Bash", command=COMMIT), more, ENDED) == "Not committed: `cart.ts`, `carts.md`."
    assert "Edited" not in done(ASKED, FIXED, called("Bash", command=COMMIT), more)
    assert left(ASKED, FIXED, more, called("Bash", command=COMMIT), ENDED) == ""


def test_a_session_without_a_commit_says_which_files_it_edited() -> None:
    more = agent("", "[Edit] src/cart.ts", "[Bash] sed -i 's/a/b/' src/fees.ts")
    told = "No commit in this session: `checkout.spec.ts`, `cart.ts`, `fees.ts`."
    assert outcome([ASKED, FIXED, more, ENDED])[1] == told
    for commits in ("[Bash] rtk git -C shop commit --amend --no-edit", "[Skill] commit"):
        assert outcome([ASKED, FIXED, agent("", commits), ENDED])[1] == "", commits
    assert outcome([ASKED, FIXED, agent("", "[Bash] git show commit"), ENDED])[1]
    assert outcome([ASKED, agent("The cart is emptied by the second suite, I found.")])[1] == ""


@pytest.mark.parametrize(
    "call", ["[apply_patch] src/cart.ts, src/fees.ts", "[shell] apply_patch src/cart.ts, src/fees.ts"]
)
def test_every_file_of_a_patch_is_edited(call: str) -> None:
    assert done(ASKED, agent("", call), ENDED).endswith("Edited `cart.ts`, `fees.ts`.")


def test_a_commit_that_a_hook_blocked_is_left() -> None:
    tried, blocked = called("Bash", command=COMMIT), agent("The commit was blocked by the pre-commit hook.")
    assert "Committed" not in done(ASKED, FIXED, tried, blocked)
    assert outcome([ASKED, FIXED, tried, blocked])[1].startswith("Failed last: `git commit`. No commit in this session")
    again = called("Bash", command=COMMIT)
    assert done(ASKED, FIXED, tried, blocked, again, ENDED).count("Give each suite a cart") == 1
    assert outcome([ASKED, FIXED, tried, blocked, again, ENDED])[1] == ""


def test_a_session_that_ends_in_a_step_did_not_finish_its_last_request() -> None:
    asked, step = person("commit this"), agent("I see the changelog first.", "[Read] CHANGELOG.md")
    assert left(ASKED, FIXED, asked, step) == "Not finished: commit this."
    assert left(ASKED, FIXED, asked, step, person("/exit")) == "Not finished: commit this."
    assert left(ASKED, FIXED, asked, step, called("Bash", command=COMMIT), ENDED) == ""
    pasted = "The reviewer wants the cache removed."
    message = Message("u", Role.USER, pasted, authors=f"pasted:{len(pasted)}")
    edit = agent("Good catch.", "[Edit] src/cache.ts")
    assert left(ASKED, FIXED, message, step) == "Not finished: the last step."
    assert left(ASKED, FIXED, message, edit) == "Not finished: the last step (`cache.ts`).", "another wrote the request"
    assert "a cart of its own" in done(ASKED, FIXED, message, edit)
    question = agent("One thing.", "[AskUserQuestion] Should the export be CSV or JSON?")
    assert left(ASKED, FIXED, question) == "The agent's question was not answered: Should the export be CSV or JSON?"


PLAN = """Implement the following plan:

> # Plan: Give each suite a cart
>
> ## Verification
>
> 1. `npm test` - all pass
> 2. `npx playwright show-report --last` and look at it
> 3. **Manual**: open the shop in a browser and buy two books
> 4. `npm run lint`
> ```bash
> npm run smoke   # against staging
> ```
>
> ## Notes
>
> - `npm run other`
"""


def test_checks_of_the_plan_that_nobody_ran_are_left() -> None:
    ran = agent("", "[Bash] rtk npm test 2>&1", "[Bash] npx playwright show-report --last --open")
    closing = agent("Each suite has a cart of its own now, tests and lint are clean.", "")
    told = left(sent(PLAN), FIXED, ran, closing)
    assert told == (
        "Not run, of the plan's checks: Manual: open the shop in a browser and buy two books; npm run smoke."
    )
    assert "show-report" in left(sent(PLAN), FIXED, closing), "its report does not name it"


@pytest.mark.parametrize(
    "closing",
    [
        "The carts are split.\n\n- ❌ **Two integration tests fail**\n- ✅ Unit tests pass",
        "The carts are split.\n\n## Nächste Schritte\n\n- Two integration tests fail",
        "The carts are split.\n\n- [x] Unit tests\n- [ ] Two integration tests fail",
    ],
)
def test_what_a_report_marks_or_lists_as_open_is_left(closing: str) -> None:
    assert left(ASKED, FIXED, agent(closing)) == "Two integration tests fail."


def test_the_findings_of_a_review_are_left_where_nothing_was_changed() -> None:
    review = agent("I reviewed the branch.\n\n## Recommendations\n\n1. Cover the refunds\n2. Name the constant")
    assert left(ASKED, review) == "Cover the refunds. Name the constant."
    assert "Cover the refunds" not in done(ASKED, review)
    assert left(ASKED, FIXED, review) == ""


def test_a_remark_behind_a_report_is_no_report() -> None:
    report = "I gave each suite a cart of its own in `cart.ts`, and the fees are computed once for all suites."
    remark = agent("The background task finished.")
    assert "fees are computed once" in done(ASKED, FIXED, agent(report), remark)
    assert "background" not in done(ASKED, FIXED, agent(report), remark)


def test_a_yes_stands_for_what_was_asked_before_it() -> None:
    design = person("can you propose a view of the tide tables?"), agent("A table per harbour would be the plainest.")
    told = done(*design, person("yes, go for it please"), FIXED)
    assert told.startswith("Asked: can you propose a view of the tide tables? The checkout tests pass")


def test_what_explains_was_not_done() -> None:
    report = (
        "## Problem\n\nThe suites shared one cart that was emptied.\n\n**Before:**\n- It was created once\n\n"
        "## Fix\n\n- Created `cart.ts` with a cart per suite\n- Root cause: the cart was shared"
    )
    told = done(ASKED, agent("", "[Edit] src/cart.ts"), agent(report))
    assert "Created `cart.ts` with a cart per suite." in told
    assert "emptied" not in told and "created once" not in told and "was shared" not in told


def test_what_the_person_took_back_was_not_done() -> None:
    renamed = agent("Renamed `checkpoints` to `steps` in the list.", "[Edit] src/list.ts")
    back = (
        person("no, this should still be checkpoints, please"),
        agent("Restored `checkpoints` in the list.", "[Edit] list.ts"),
    )
    assert "Renamed" in done(ASKED, renamed)
    assert "Renamed" not in done(ASKED, renamed, *back) and "Restored" in done(ASKED, renamed, *back)


def test_a_last_request_without_an_answer_is_left() -> None:
    asked = person("can you cover the refunds as well?")
    assert left(ASKED, FIXED, asked) == "Unanswered: can you cover the refunds as well?"
    assert left(ASKED, FIXED, asked, agent("The refunds are covered by three tests of their own.")) == ""
    assert left(ASKED, FIXED, person("thanks!")) == ""


def test_an_interrupt_is_left_until_something_follows() -> None:
    stop = Message("u", Role.USER, "", events=(Event(Happened.INTERRUPT),))
    assert left(ASKED, FIXED, stop) == "The person interrupted the last step."
    assert left(ASKED, stop, FIXED) == ""
    assert "interrupted" not in left(ASKED, FIXED, stop, person("please take the other cart instead"))


def test_tests_that_failed_last_are_left_until_they_pass() -> None:
    failing, passing = agent("", "[Bash] npm test 2>&1 | tail (failed)"), agent("", "[Bash] npm test -- --all")
    assert left(ASKED, FIXED, failing, ENDED) == "Failed last: `npm test`."
    assert left(ASKED, FIXED, failing, passing, ENDED) == "" and "`npm test`" in left(ASKED, passing, FIXED, failing)
    assert left(ASKED, FIXED, agent("", "[Bash] ls missing (failed)"), ENDED) == "", "no test"
    edit = agent("", "[Edit] tests/cart.spec.ts (failed)"), agent("", "[Edit] tests/cart.spec.ts")
    assert left(ASKED, FIXED, failing, *edit, ENDED) == "Failed last: `npm test`.", "an edit of a test is no run"


@pytest.mark.parametrize(
    "put_off",
    [
        "Refunds are not yet covered by any test.",
        "Refunds are not covered yet.",
        "The migration of old carts is out of scope here.",
        "Manual testing on a real device is still open.",
        "The change has not been pushed to the remote.",
        "You will need to restart the worker yourself.",
    ],
)
def test_what_the_agent_puts_off_at_the_end_is_left_and_not_done(put_off: str) -> None:
    closing = agent(
        f"The checkout tests pass now with a cart per suite.\n\n- {put_off}\n- Let me know if you want more."
    )
    assert left(ASKED, closing) == put_off
    assert put_off not in done(ASKED, closing) and "a cart per suite" in done(ASKED, closing)
    assert left(ASKED, closing, person("please do that too"), FIXED) == "", "it was not said last"


def test_the_agents_question_is_left_and_an_offer_is_not() -> None:
    question = "The old carts are gone from the database now. Which of the two formats should the export have?"
    assert left(ASKED, agent(question)).endswith("not answered: Which of the two formats should the export have?")
    assert left(ASKED, agent("The old carts are gone from the database now. Should I cover the refunds, too?")) == ""
    assert left(ASKED, agent("The old carts are gone now. I can do the remaining two as well, if you like.")) == ""


# The story, the sentence, the slug


def test_the_account_tells_what_was_answered_and_refused() -> None:
    answer = chosen("Postgres", Event(Happened.ANSWER, "Which database should it use? → Postgres"))
    refusal = chosen("use the sandbox", Event(Happened.REJECTED, "use the sandbox"))
    silent = person("", Event(Happened.REJECTED))
    told = account([ASKED, answer, refusal, silent, FIXED])
    assert told == (
        "### What was asked\n\n- Please fix the flaky checkout tests in the shop repository.\n\n"
        "### What was answered\n\n- Which database should it use? → Postgres\n\n"
        "### What was refused\n\n- use the sandbox\n\n"
        "### What came of it\n\n- The checkout tests pass now, because each suite has a cart of its own."
    )


def test_the_sentence_tells_what_was_asked_first_and_what_came_of_it() -> None:
    talk = [ASKED, FIXED]
    assert sentence(talk, "shop") == (
        "The user asked in shop: Please fix the flaky checkout tests in the shop repository; the agent: The checkout"
        " tests pass now, because each suite has a cart of its own."
    )
    committed = sentence([*talk, called("Bash", command=COMMIT)], "shop")
    assert committed.endswith("; the agent: Give each suite a cart of its own.")
    assert sentence([FIXED], "").startswith("The agent worked: The checkout tests pass") and sentence([], "shop") == ""


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("Please fix the flaky checkout tests in the shop repository.", "fix-flaky-checkout-tests-shop-repository"),
        ("¿puedes renombrar todas las fotos por fecha?", "puedes-renombrar-todas-las-fotos-por"),
        ("ok", ""),
    ],
)
def test_the_slug_is_made_of_the_first_request(asked: str, name: str) -> None:
    assert structure.slug(session.read([person(asked), FIXED])) == name


# What is kept


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("please remember that web-1 runs Debian 12 and not 11", "Web-1 runs Debian 12 and not 11."),
        ("remember: deploys need the VPN and a ticket", "Deploys need the VPN and a ticket."),
        ("note, our logs are in /var/log/harbor, not in journald", "Our logs are in /var/log/harbor, not in journald."),
        ("don't forget: this repo has no CI at all", "This repo has no CI at all."),
        ("bitte merk dir, dass wir hier nur pnpm nehmen", "Wir hier nur pnpm nehmen."),
        ("souviens-toi que notre base de test est en lecture seule", "Notre base de test est en lecture seule."),
        ("recuerda que nuestros precios van en céntimos", "Nuestros precios van en céntimos."),
        ("lembre-se de que nosso relatório sai toda segunda", "Nosso relatório sai toda segunda."),
        ("запомни, что наш деплой идёт через VPN", "Наш деплой идёт через VPN."),
        ("请记住，这个项目用 pnpm，不用 npm。", "这个项目用 pnpm，不用 npm。"),
        ("覚えておいて：このプロジェクトではpnpmを使います。", "このプロジェクトではpnpmを使います。"),
    ],
)
def test_what_is_to_be_remembered_is_kept_in_many_languages(text: str, noted: str) -> None:
    (found,) = structure.statements([said := person(text)])
    assert (found.text, found.kind, found.severity) == (noted, MemoryKind.FACT, Severity.NONE)
    assert (found.entries, found.trust, found.scope) == ((said.uuid,), Trust.SAID, Scope.PROJECT)


@pytest.mark.parametrize(
    "text",
    [
        "always run the linter before you commit",
        "we never deploy on Fridays in this team",
        "please never push to main, we open pull requests",
        "from now on write the tests first",
        "ab sofort nehmen wir pnpm statt npm",
        "nunca hagas push a main, por favor",
        "utilise toujours pnpm dans ce dépôt",
        "usa siempre pnpm en este repositorio",
        "bitte niemals direkt auf main pushen",
        "bei uns gilt: wir mergen niemals am Freitag",
        "以后提交信息都用英文写。",
        "コミットメッセージは必ず英語で書いてください。",
    ],
)
def test_a_standing_rule_is_kept_and_binds_nobody(text: str) -> None:
    (found,) = structure.statements([person(text)])
    assert found.text.rstrip(".").casefold() == text.rstrip(".").casefold()
    assert (found.kind, found.severity, found.trust) == (MemoryKind.PREFERENCE, Severity.PREFER, Trust.SAID)
    assert found.severity not in BINDING


@pytest.mark.parametrize(
    "text",
    [
        "for now always use the staging database, please",
        "never touch the vendor folder in this branch please",
        "why do you never run the tests first?",
        "should we always use tabs in our code?",
        "i always forget how we deploy this",
        "it was never paid, so we cancelled it",
        "le test échoue toujours sur ma machine",
        "ça ne marche toujours pas chez moi",
        "el test siempre falla en mi máquina",
        "der Test ist niemals durchgelaufen",
        "o servidor sempre cai de noite",
        "тест всегда падает на моей машине",
        "never mind the failing test for our docs",
        "remember to run the linter",
        "please remember",
        "please fix the typo in our README",
    ],
)
def test_what_passes_or_is_asked_is_not_kept(text: str) -> None:
    assert kept(person(text)) == []


def test_only_the_newest_two_rules_of_a_session_are_kept() -> None:
    rules = [
        person(f"from now on we use {name} for our releases, please") for name in ("tito", "release-it", "goreleaser")
    ]
    assert kept(*rules) == [each.text.replace("from", "From") + "." for each in rules[1:]]
    again = person("we never deploy on Fridays"), person("please, we never deploy on fridays!")
    assert len(kept(*again)) == 1


def test_an_answer_is_kept_with_its_question() -> None:
    told = Event(Happened.ANSWER, "Which database should the export use? → Postgres (Recommended)")
    answer = chosen("Postgres", told)
    (found,) = structure.statements([ASKED, agent("I have a question."), answer, FIXED])
    assert found.text == "Which database should the export use? Postgres."
    assert (found.kind, found.trust, found.entries) == (MemoryKind.DECISION, Trust.CHOSEN, (answer.uuid,))


@pytest.mark.parametrize(
    "told",
    [
        "What should I do next? → Cover refunds",
        "Which approach should I take? → You decide",
        "How should I proceed? → Option 2",
        "Which format should it have? → what do you mean?",
        "Is this ready to commit? → Yes, commit it",
        "Which design direction should the login page take? → Option A",
        "Which of the two layouts should the login page have? → B",
        "Should sharing be folder-level only, or also for files? → Folders and files",
        "Should the export of old carts be encrypted? → Yes",
        "Which approach do you prefer? → Approach 2",
        "Which format should it have? → JSON",
        "How should the errors of the export be shown? → Inline",
        "What should the export of old carts do? → Skip them",
    ],
)
def test_an_answer_about_the_work_at_hand_is_not_kept(told: str) -> None:
    assert kept(chosen("", Event(Happened.ANSWER, told))) == []


@pytest.mark.parametrize(
    "text",
    [
        "look at this:\n\n> remember that we always use zappa in this repo",
        "look at this, please\n\n```\nremember that we always use zappa in this repo\n```",
        "Bartek wrote in the review:\n\nWe always deploy with zappa, never with anything else. From now on use zappa.",
        "here is the log:\n\n2026-03-02T10:00:00 INFO always use zappa from now on in this repo\n"
        "2026-03-02T10:00:01 INFO never without zappa",
    ],
)
def test_nothing_is_kept_of_what_was_pasted(text: str) -> None:
    assert kept(sent(text)) == []
    whole = "remember that we always use zappa in this repo"
    assert kept(Message("u", Role.USER, whole, authors=f"pasted:{len(whole)}"), Message("v", Role.USER, whole)) == []


def test_nothing_is_kept_of_what_the_agent_says() -> None:
    assert kept(ASKED, agent("Remember that we always use zappa here. From now on never push to main.")) == []


# Which conversations are worth it


@pytest.mark.parametrize(
    "message",
    [
        person("remember: the port is 8080"),
        person("from now on, run the linter before every commit"),
        person("You should always use the sandbox."),
        sent("Never push to main."),
        person("请记住：端口是 8080。"),
        person("le déploiement échoue toujours"),
        chosen("", Event(Happened.ANSWER, "Which database? → Postgres")),
        chosen("use the sandbox", Event(Happened.REJECTED, "use the sandbox")),
    ],
)
def test_a_short_conversation_counts_where_something_is_laid_down(message: Message) -> None:
    assert asks_to_keep([person("hello there"), message, agent("Ok.")])


@pytest.mark.parametrize(
    "message",
    [
        person("please fix the typo in our README"),
        person("never mind"),
        person("", Event(Happened.REJECTED), Event(Happened.INTERRUPT)),
        sent("Bartek wrote in the review:\n\nWe always deploy with zappa, never with anything else."),
        sent("Implement the following plan:\n\nAlways use the sandbox."),
        Message("u", Role.USER, "Always read the output file.", authors="client:28"),
        agent("From now on I always run the linter. Remember that the port is 8080."),
    ],
)
def test_a_short_conversation_does_not_count_where_nothing_is(message: Message) -> None:
    assert not asks_to_keep([person("hello there"), message, agent("Ok.")])


# The strategy


def extracted(*messages: Message) -> Extraction:
    return told(messages, "shop")


def test_a_session_is_worth_what_was_done_or_stated_and_small_talk_nothing() -> None:
    busy = extracted(ASKED, FIXED)
    assert not busy.is_empty and busy.statements == () and "a cart of its own" in busy.rollout_summary
    assert not extracted(person("remember: the port is 8080 here"), agent("Ok.")).is_empty
    assert extracted(person("hi"), agent("Hello!"), person("how are you?"), agent("Fine.")).is_empty


def test_the_summary_ends_with_what_is_left() -> None:
    summary = extracted(ASKED, FIXED, person("can you cover the refunds as well?")).rollout_summary
    assert "\n\nLeft: Unanswered: can you cover the refunds as well? No commit in this session" in summary


def test_the_strategys_name_tells_that_no_model_was_asked() -> None:
    assert Offline().id.startswith("offline-")


def test_the_same_messages_give_the_same_extraction() -> None:
    talk = [ASKED, FIXED, called("Bash", command=COMMIT), person("we never deploy on Fridays")]
    assert extracted(*talk) == extracted(*list(talk))


def test_what_is_written_is_bounded() -> None:
    long = "we never use tool " + "word " * 200
    talk = [
        each
        for n in range(200)
        for each in (person(f"{long}{n}."), agent(f"The {n}th of them " + "is gone " * 200 + "."))
    ]
    found = extracted(*talk)
    assert estimate_tokens(found.rollout_summary) < 600 and estimate_tokens(found.raw_memory) < 2_000
    assert len(found.statements) <= 14 and all(len(each.text) <= 401 for each in found.statements)


@given(st.text(max_size=400), st.text(max_size=400))
def test_no_text_is_too_odd(one: str, other: str) -> None:
    talk = [person(one, Event(Happened.ANSWER, other)), agent(other, f"[Bash] {one}"), person(other)]
    extracted(*talk)
    asks_to_keep(talk)


@pytest.mark.parametrize(
    "piece",
    [*("first ", "?\n", "\n", "\n ", " ", "<a>", "'a ", '"', "```\n", "a.", "- ", "> ", "A. b\n", "_"),
     *("‘a ", "。", "a\n"),
     *("git -a ", "sed -i ", "- ❌ a\n", "# next\n- a\n"),
     *("(failed) [Bash] x\n", "please, and also ", "remember that ", "not yet ", "the summary: ", "always ", "**a *")],
)  # fmt: skip
def test_no_text_is_slow(piece: str) -> None:
    """Not a timed test of the machine: what is not linear would take minutes."""
    text = piece * (100_000 // len(piece)) + "x"
    talk = [person(text), agent(text, f"[Bash] {text[:50_000]}"), person(text + "?"), agent(text)]
    started = time.process_time()
    extracted(*talk)
    asks_to_keep(talk)
    assert time.process_time() - started < 10
