"""How well and how fast `recollect.redact` works: recall on made-up secrets, false positives on real text, speed.

The secrets are drawn from recipes with a seed, never written out, so that no secret scanner takes this file for a leak.
The tests use the same generator. Nothing here reads anything but the folder it is given; nothing leaves the process.

Invariant: the same seed gives the same secrets, and every secret is unlike every other.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from recollect.redact import redact, scan
from recollect.redact.judge import Finding

_ALNUM = string.ascii_letters + string.digits
_SETS = {  # what {A36} and the like draw from
    "A": _ALNUM,
    "W": _ALNUM + "_-",
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_lowercase + string.digits,
    "B": string.ascii_uppercase + "234567",
    "C": string.ascii_letters,
    "b": _ALNUM + "+/",
    "x": "0123456789abcdef",
    "z": "abcdefghijklmnopqrstuvwxyz234567",
    "d": string.digits,
    "S": _ALNUM + "!@#$%^&*?~+=_-.",
    "T": _ALNUM + "!#$%&*:/?@^~",
}

# Provider and the shape of its key. A draw is {<set><length>}, {jwt}, {pem:<kind>}, {uuid} or {word}.
KEY_RECIPES = (
    ("openai", "sk-{A20}T3Blbk{A22}"),
    ("openai", "sk-proj-{W74}T3Blbk{W74}"),
    ("openai", "sk-svcacct-{W100}"),
    ("openai", "sk-admin-{W80}"),
    ("anthropic", "sk-ant-api03-{W93}AA"),
    ("anthropic", "sk-ant-oat01-{W93}AA"),
    ("anthropic", "sk-ant-admin01-{W93}AA"),
    ("openrouter", "sk-or-v1-{x64}"),
    ("deepseek", "sk-{x32}"),
    ("aws", "AKIA{B16}"),
    ("aws", "ASIA{B16}"),
    ("aws", "ABSK{b120}="),
    ("google", "AIza{W35}"),
    ("google", "GOCSPX-{W28}"),
    ("google", "ya29.a0{W140}"),
    ("google", "1//0{W60}"),
    ("azure", "{A3}8Q~{W34}"),
    ("azure", "{A76}AZDO{A4}"),
    ("azure", "{b76}+ASt{b6}=="),
    ("github", "ghp_{A36}"),
    ("github", "gho_{A36}"),
    ("github", "ghu_{A36}"),
    ("github", "ghs_{A36}"),
    ("github", "ghr_{A36}"),
    ("github", "github_pat_{A22}_{A59}"),
    ("gitlab", "glpat-{W20}"),
    ("gitlab", "gldt-{W20}"),
    ("gitlab", "glrt-{W20}"),
    ("gitlab", "glpat-{W27}.01.{L9}"),
    ("gitlab", "GR1348941{W20}"),
    ("slack", "xoxb-{d12}-{d13}-{A24}"),
    ("slack", "xoxp-{d12}-{d12}-{d13}-{x32}"),
    ("slack", "xoxa-2-{d12}-{A24}"),
    ("slack", "xoxe.xoxp-1-{W146}"),
    ("slack", "xapp-1-A{U10}-{d13}-{x64}"),
    ("stripe", "sk_live_{A24}"),
    ("stripe", "sk_test_{A99}"),
    ("stripe", "rk_live_{A24}"),
    ("stripe", "whsec_{A32}"),
    ("npm", "npm_{A36}"),
    ("pypi", "pypi-AgEIcHlwaS5vcmc{W140}"),
    ("huggingface", "hf_{C34}"),
    ("twilio", "SK{x32}"),
    ("twilio", "AC{x32}"),
    ("sendgrid", "SG.{W22}.{W43}"),
    ("mailgun", "key-{x32}"),
    ("mailgun", "{x32}-{x8}-{x8}"),
    ("mailchimp", "{x32}-us{d2}"),
    ("telegram", "{d10}:AA{W33}"),
    ("discord", "M{A23}.{W6}.{W38}"),
    ("jwt", "{jwt}"),
    ("age", "AGE-SECRET-KEY-1{U58}"),
    ("digitalocean", "dop_v1_{x64}"),
    ("databricks", "dapi{x32}"),
    ("doppler", "dp.pt.{A43}"),
    ("grafana", "glsa_{A32}_{x8}"),
    ("grafana", "glc_{b100}"),
    ("vault", "hvs.{W90}"),
    ("terraform", "{A14}.atlasv1.{W67}"),
    ("linear", "lin_api_{A40}"),
    ("notion", "secret_{A43}"),
    ("notion", "ntn_{d11}{A35}"),
    ("figma", "figd_{W40}"),
    ("atlassian", "ATATT3xFfGF0{W180}={U8}"),
    ("atlassian", "ATBB{A32}"),
    ("shopify", "shpat_{x32}"),
    ("square", "sq0atp-{W22}"),
    ("square", "EAAA{W60}"),
    ("facebook", "EAAC{A180}"),
    ("planetscale", "pscale_tkn_{W43}"),
    ("postman", "PMAK-{x24}-{x34}"),
    ("newrelic", "NRAK-{U27}"),
    ("newrelic", "{x36}NRAL"),
    ("sentry", "sntrys_{b120}"),
    ("sentry", "sntryu_{x64}"),
    ("groq", "gsk_{A52}"),
    ("xai", "xai-{A80}"),
    ("replicate", "r8_{A37}"),
    ("perplexity", "pplx-{A48}"),
    ("supabase", "sbp_{x40}"),
    ("supabase", "sb_secret_{W31}"),
    ("netlify", "nfp_{A36}"),
    ("vercel", "vcp_{A56}"),
    ("fly", "FlyV1 fm2_{b200}"),
    ("docker", "dckr_pat_{W27}"),
    ("rubygems", "rubygems_{x48}"),
    ("circleci", "CCIPAT_{A22}_{x40}"),
    ("buildkite", "bkua_{x40}"),
    ("pulumi", "pul-{x40}"),
    ("heroku", "HRKU-{W60}"),
    ("tailscale", "tskey-auth-{A17}-{A32}"),
    ("tavily", "tvly-dev-{A32}"),
    ("brevo", "xkeysib-{x64}-{A16}"),
    ("resend", "re_{A8}_{A24}"),
    ("langsmith", "lsv2_pt_{x32}_{x10}"),
    ("pinecone", "pcsk_{A6}_{A63}"),
    ("nvidia", "nvapi-{W64}"),
    ("cloudflare", "v1.0-{x24}-{x146}"),
    ("airtable", "pat{A14}.{x64}"),
    ("dropbox", "sl.{W135}"),
    ("cerebras", "csk-{L48}"),
    ("elevenlabs", "sk_{x48}"),
    ("firecrawl", "fc-{x32}"),
    ("jina", "jina_{A60}"),
    ("dynatrace", "dt0c01.{B24}.{B64}"),
    ("sonar", "squ_{x40}"),
    ("posthog", "phx_{A43}"),
    ("wandb", "wandb_v1_{A70}"),
    ("1password", "ops_ey{A120}"),
    ("hubspot", "pat-na1-{uuid}"),
    ("razorpay", "rzp_live_{A14}"),
    ("vercel", "vercel_blob_rw_{A16}_{A31}"),
    ("expo", "expo_{W40}"),
    ("confluent", "cflt{b60}"),
    ("alibaba", "LTAI{A20}"),
    ("contentful", "CFPAT-{W43}"),
    ("crypt", "$2b$12${A53}"),
    ("crypt", "$6${A8}${A86}"),
    ("e2b", "e2b_{x40}"),
    ("easypost", "EZAK{A54}"),
    ("fireworks", "fw_{A24}"),
    ("frameio", "fio-u-{W64}"),
    ("infracost", "ico-{A32}"),
    ("jfrog", "AKCp8{A69}"),
    ("launchdarkly", "sdk-{uuid}"),
    ("neon", "napi_{L64}"),
    ("paypal", "access_token$production${L16}${x32}"),
    ("plaid", "access-production-{uuid}"),
    ("prefect", "pnu_{A36}"),
    ("readme", "rdme_{L70}"),
    ("render", "rnd_{A28}"),
    ("shippo", "shippo_live_{x40}"),
    ("sourcegraph", "sgp_{x40}"),
    ("tencent", "AKID{A32}"),
    ("together", "tgp_v1_{W43}"),
    ("typeform", "tfp_{W44}"),
    ("voyage", "pa-{W43}"),
    ("wallet", "xprv{A107}"),
    ("yandex", "AQVN{W36}"),
    ("crates-io", "cio{A32}"),
    ("nuget", "oy2{z43}"),
    ("apify", "apify_api_{A36}"),
    ("browserbase", "bb_live_{A27}"),
    ("cursor", "key_{x64}"),
    ("daytona", "dtn_{x64}"),
    ("inngest", "signkey-prod-{x64}"),
    ("flutterwave", "FLWSECK-{x32}-X"),
    ("lob", "live_{x35}"),
    ("openai", "ek_{x32}"),
    ("token", "duffel_live_{W43}"),
    ("token", "polar_oat_{A43}"),
    ("token", "mdb_sa_sk_{W40}"),
    ("token", "tr_prod_{A20}"),
)

# Secrets without a shape of their own: only a name beside them tells.
TOKEN_RECIPES = (
    "{b40}",
    "{x32}",
    "{x40}",
    "{x64}",
    "{uuid}",
    "{A24}",
    "{A32}",
    "{W43}",
    "{L40}",
    "{b86}==",
    "{A16}",
    "{L52}",
)
PASSWORD_RECIPES = (
    "{word}{d1}{word}{d1}",
    "{word}{d2}{word}!",
    "{Word}{d4}!",
    "{Word}@{d4}",
    "{Word}#{word}{d2}",
    "{word}-{word}-{d2}-{word}",
    "p@$$w0rd!{d3}",
    "Tr0ub4dor&{d3}{C2}",
    "{S10}",
    "{S14}",
    "{S20}",
    "{A12}",
    "{A9}#{A3}",
    "{A4}:{A6}",
    "{A5}/{A5}",
    "{A5}%40{A6}",
    "{A4}&{A4}!{A2}",
    "{T16}",
)
_WORDS = (
    "anchor bison candle dragon ember falcon garnet harbor indigo jasper kettle lantern meadow nectar orchid pepper"
).split()


@dataclass(frozen=True, slots=True)
class Secret:
    """A made-up secret."""

    provider: str  # or "token", "password", "pem"
    value: str
    bare: bool  # has a shape: to be found without a name beside it


@dataclass(frozen=True, slots=True)
class Context:
    """A way a secret is written down. `render` gets the secret and answers with the text around it."""

    name: str
    render: Callable[[Secret], str]
    fits: Callable[[Secret], bool]


def secrets(seed: int = 0) -> list[Secret]:
    """Made-up secrets of every recipe, two of each key and more of the shapeless ones."""
    rng = random.Random(seed)
    made = [Secret(name, _draw(shape, rng), True) for name, shape in KEY_RECIPES for _ in range(2)]
    made += [Secret("token", _draw(shape, rng), False) for shape in TOKEN_RECIPES for _ in range(4)]
    made += [Secret("password", _draw(shape, rng), False) for shape in PASSWORD_RECIPES for _ in range(4)]
    made += [Secret("pem", pem(kind, rng), True) for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")]
    return list({secret.value: secret for secret in made}.values())


def _draw(shape: str, rng: random.Random) -> str:
    def one(match: re.Match[str]) -> str:
        what = match[1]
        if what == "jwt":
            head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
            body = base64.urlsafe_b64encode(f'{{"sub":"{rng.random()}"}}'.encode()).decode().rstrip("=")
            return f"{head}.{body}." + _draw("{W43}", rng)
        if what == "uuid":
            return _draw("{x8}-{x4}-4{x3}-a{x3}-{x12}", rng)
        if what.lower() == "word":
            word = rng.choice(_WORDS)
            return word if what == "word" else word.capitalize()
        return "".join(rng.choices(_SETS[what[0]], k=int(what[1:])))

    return re.sub(r"\{(\w+)\}", one, shape)


def pem(kind: str, rng: random.Random) -> str:
    """A private key block of 20 lines."""
    lines = [_draw("{b64}", rng) for _ in range(19)] + [_draw("{b30}==", rng)]
    label = f"{kind}PRIVATE KEY"
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


# In a template § is the secret, «N» and «n» are what it is called; a word before a colon says how it is encoded.
_NAMED = {
    "shell": "export «N»=§",
    "shell-double": 'export «N»="§"',
    "shell-single": "FOO=1 «N»='§' ./run.sh --fast",
    "fish": "set -gx «N» §",
    "powershell": '$env:«N» = "§"',
    "setx": 'setx «N» "§"',
    "dotenv": "HOST=db\n«N»=§\nPORT=5432\n",
    "dockerfile": "FROM python:3.11\nENV «N»=§\n",
    "yaml": "db:\n  host: db\n  «n»: §\n  port: 5432\n",
    "yaml-quoted": "- «n»: '§'\n",
    "k8s": 'env:\n- name: «N»\n  value: "§"\n',
    "toml": '«n» = "§"\nport = 1\n',
    "properties": "spring.datasource.«n»=§\n",
    "python": '«n» = "§"\n',
    "python-call": 'client = Client("db", «n»="§", timeout=3)',
    "python-environ": "os.environ['«N»'] = '§'",
    "setenv": 'os.Setenv("«N»", "§")',
    "javascript": "const options = { «n»: '§', retries: 3 };",
    "typed": 'const «n»: string = "§";',
    "ruby": ":«n» => '§',",
    "flag": "tool deploy --«n»=§ --verbose",
    "flag-space": "tool deploy --«n» § --verbose",
    "flag-quoted": 'tool deploy --«n» "§" --verbose',
    "prose": "my «n» is § and it worked yesterday",
    "prose-colon": "Here you go, «n»: §",
    "prose-quoted": 'The «n» for staging is "§".',
    "markdown": "**«n»:** `§`",
    "table": "| «n» | § |",
    "log": "2024-05-01T10:00:00Z INFO connect user=bob «N»=§ host=db",
    "fence": "Run this:\n```bash\nexport «N»=§\n```\n",
    "xml": "<config><«n»>§</«n»></config>",
    "escaped": "JSON:export «N»=§\necho done",
    "json": "DICT:«n»",
    "json-in-json": "NEST:«n»",
}
_BARE = {
    "alone": "§",
    "sentence": "I pasted § into the chat by mistake.",
    "parenthesis": "the old one (§) is revoked",
    "csv": "bob,§,2024",
    "list": "- §\n- other\n",
    "diff": "+§\n-old\n",
    "url-path": "https://api.acme.io/hook/§/send",
    "encoded": "redirect=%2Fcb%3Fk%3D§%26x%3D1",
    "escaped-newline": "JSON:first\n§\nlast",
    "colour": "\x1b[32m§\x1b[0m",
    "log": "WARN invalid credential '§' (401)",
    "code": 'requests.get(url, headers={"X": "§"})',
}
_HEADERS = {
    "bearer": "Authorization: Bearer §",
    "curl-bearer": 'curl -H "Authorization: Bearer §" https://api.acme.io',
    "api-key": "curl -H 'X-Api-Key: §' https://api.acme.io",
    "header-dict": 'headers = {"Authorization": "Bearer §"}',
    "cookie": "Cookie: session=§; theme=dark",
    "query": "GET https://api.acme.io/v1/items?limit=5&access_token=§&page=2 200",
    "url-user": "git clone https://§@github.com/acme/app.git",
    "url-oauth": "git clone https://oauth2:§@gitlab.com/acme/app.git",
}
_PASSWORDS = {
    "connection-string": "Server=db;User Id=sa;Password=§;Encrypt=true",
    "dsn": "app:§@tcp(127.0.0.1:3306)/app",
    "netrc": "machine db.acme.io login bob password §",
    "curl-user": "curl -u bob:§ https://acme.io",
    "curl-user-quoted": 'curl -s --user "bob:§" https://acme.io',
    "mysql": "mysql -u root -p'§' app",
    "sql": "CREATE USER bob IDENTIFIED BY '§';",
    "stdin": "echo '§' | docker login -u bob --password-stdin",
    "login": "login: bob\npassword: §\n",
    "url": "URL:postgres://bob:§@db.acme.io:5432/app",
    "redis": "URL:redis://:§@cache:6379/0",
    "form": "URL:username=bob&password=§&remember=1",
    "basic": "BASIC:Authorization: Basic §",
}


def contexts() -> list[Context]:
    """All ways to write a secret down."""
    made = [Context(name, _renderer(shape), _is_line) for name, shape in _NAMED.items()]
    made += [Context(f"bare-{name}", _renderer(shape), lambda s: s.bare) for name, shape in _BARE.items()]
    made += [Context(name, _renderer(shape), _is_token) for name, shape in _HEADERS.items()]
    made += [Context(name, _renderer(shape), lambda s: s.provider == "password") for name, shape in _PASSWORDS.items()]
    made += [Context(f"pem-{name}", render, lambda s: s.provider == "pem") for name, render in _PEM.items()]
    return made


def _is_line(secret: Secret) -> bool:
    return secret.provider != "pem"


def _is_token(secret: Secret) -> bool:
    return secret.provider not in ("pem", "password") and not set(secret.value) & set("/+ =:")


_PEM: dict[str, Callable[[Secret], str]] = {
    "indented": lambda s: "key: |\n" + "\n".join("    " + line for line in s.value.splitlines()),
    "literal": lambda s: 'PRIVATE_KEY="' + s.value.replace("\n", "\\n") + '"',
    "json": lambda s: json.dumps({"type": "service_account", "private_key": s.value, "client_id": "1"}),
    "nested": lambda s: json.dumps({"content": json.dumps({"private_key": s.value})}),
    "numbered": lambda s: "\n".join(f"{n:>6}→{line}" for n, line in enumerate(s.value.splitlines(), 1)),
    "truncated": lambda s: "\n".join(s.value.splitlines()[:-3]) + "\n",
    "cut": lambda s: s.value[:700],
    "quoted-mail": lambda s: "\n".join("> " + line for line in s.value.splitlines()),
    "concatenated": lambda s: " +\n  ".join(f'"{line}\\n"' for line in s.value.splitlines()),
    "heredoc": lambda s: f"cat > id_rsa <<EOF\n{s.value}\nEOF\nchmod 600 id_rsa",
}


def _renderer(shape: str) -> Callable[[Secret], str]:
    def render(secret: Secret) -> str:
        low, high = ("password", "DB_PASSWORD") if secret.provider == "password" else ("api_key", "ACME_TOKEN")
        text = shape.replace("«N»", high).replace("«n»", low)
        how, _, rest = text.partition(":")
        value = secret.value
        if how == "URL":
            return rest.replace("§", quote(value, safe=""))
        if how == "BASIC":
            return rest.replace("§", base64.b64encode(b"bob:" + value.encode()).decode())
        if how == "JSON":
            return json.dumps({"text": rest.replace("§", value)})
        if how in ("DICT", "NEST"):
            inner = json.dumps({"user": "bob", rest: value, "port": 1})
            return inner if how == "DICT" else json.dumps({"command": f"curl -d '{inner}' x"})
        return text.replace("§", value)

    return render


def leaks(secret: Secret, context: Context) -> bool:
    """Whether eight characters in a row of the secret, as it was written or as it is, survive."""
    text = context.render(secret)
    frame = context.render(Secret(secret.provider, "", secret.bare))
    left = redact(text)
    written = base64.b64encode(b"bob:" + secret.value.encode()).decode() if context.name == "basic" else secret.value
    forms = {written, quote(written, safe=""), json.dumps(written)[1:-1]}
    for form in forms:
        for piece in form.split("\n") if secret.provider == "pem" else (form,):
            size = min(8, len(piece))
            parts = {piece[i : i + size] for i in range(len(piece) - size + 1)}
            if any(part in left and part not in frame and "PRIVATE" not in piece for part in parts):
                return True
    return False


def measure_recall(seed: int = 0) -> tuple[int, int, list[tuple[Secret, Context]]]:
    """How many (secret, context) pairs were tried in how many contexts, and those that leaked."""
    ways = contexts()
    pairs = [(secret, way) for secret in secrets(seed) for way in ways if way.fits(secret)]
    return len(pairs), len(ways), [pair for pair in pairs if leaks(*pair)]


# Forms of a set that outsiders wrote before the rules for it stood, and what was found of each family then.
FORMS = Path(__file__).with_name("redact_forms.jsonl")
FIRST_SIGHT = {"assignment": 0.5, "command": 0.462, "prose": 0.099}


def measure_forms(seed: int = 0) -> dict[str, float]:
    """Return the share that is found of each family's forms, with secrets drawn by the seed."""
    rng = random.Random(seed)
    tried: dict[str, int] = {}
    found: dict[str, int] = {}
    for line in FORMS.read_text(encoding="utf-8").splitlines():
        form = json.loads(line)
        secret = _draw(form["shape"], rng)
        tried[form["family"]] = tried.get(form["family"], 0) + 1
        found[form["family"]] = found.get(form["family"], 0) + (secret not in redact(form["text"].replace("§", secret)))
    return {family: round(found[family] / count, 3) for family, count in tried.items()}


# ---- Real text ---------------------------------------------------------------------------------------------------


def texts(directory: Path) -> Iterator[str]:
    """Every string with a blank in it of every JSON line below a folder: what people, agents and tools wrote."""
    for path in sorted(directory.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                yield from _leaves(json.loads(line))
            except ValueError:
                continue


def _leaves(node: object) -> Iterator[str]:
    if isinstance(node, str):
        if " " in node:
            yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _leaves(value)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value)


def _speed(work: Callable[[str], object], corpus: list[str], size: int) -> float:
    """Megabytes a second, the best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for text in corpus:
            work(text)
        best = min(best, time.perf_counter() - began)
    return round(size / 1e6 / best, 1)


def run(directory: Path | None, seed: int = 0) -> dict[str, object]:
    """The figures. A finding in real text counts as false: whoever runs this looks at `samples` and judges."""
    tried, ways, leaked = measure_recall(seed)
    corpus = list(texts(directory)) if directory else []
    corpus = corpus or [f"{word} walked to the harbor and back, as on every other day.\n" * 40 for word in _WORDS]
    found: list[tuple[str, Finding]] = [(text, finding) for text in corpus for finding in scan(text)]
    words = sum(len(text.split()) for text in corpus)
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in corpus)
    short = ("The build is green again, so I merged it and told the others about the slow test. " * 4)[:300]
    began = time.perf_counter()
    for _ in range(20_000):
        scan(short)
    each = (time.perf_counter() - began) / 20_000 * 1e6
    return {
        "secrets": len(secrets(seed)),
        "contexts": ways,
        "recall": round(1 - len(leaked) / tried, 5),
        "forms_at_first_sight": FIRST_SIGHT,
        "forms": measure_forms(seed),
        "words": words,
        "findings": len(found),
        "false_positives_per_10k_words": round(len(found) / max(words, 1) * 10_000, 3),
        "mb_per_s": _speed(scan, corpus, size),
        "baseline_mb_per_s": _speed(lambda text: text.count("\x00\x01"), corpus, size),
        "us_per_short_text": round(each, 2),
        "samples": [_sample(text, finding) for text, finding in found[:50]],
    }


def _sample(text: str, finding: Finding) -> str:
    """What stands before a finding, and how it begins: enough to judge by, too little to steal."""
    shown = min(4, (finding.end - finding.start) // 3)
    before = text[max(0, finding.start - 40) : finding.start]
    return f"{finding.rule}: {before}{text[finding.start : finding.start + shown]}… ({finding.end - finding.start})"
