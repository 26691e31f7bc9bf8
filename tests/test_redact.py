"""Secrets go, everything else stays: recall on made-up secrets, lines that must not change, hostile input."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.redact import VERSION, redact, scan
from recollect.surfaces.bench.redact import contexts, measure_recall, secrets

UNTOUCHED = """
the password must be at least 12 characters long and contain a symbol
Password: required
reset your password: click the link in the mail
I forgot my password again, can you reset the token for me?
Tokens are counted per request; the token limit is 200000.
The secret of a good test is a clear name.
You need an API key to call this endpoint; ask the admin for a key.
authorization is checked in middleware before the handler runs
commit 3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b
git checkout 9fceb02d0ae598e95dc970b74767f19372d61af8 -- src
session 5b0c7a52-6f3e-4d1f-9a53-0d8f1c2b7e10 started
request_id=019c8a70-dda7-7f33-98ea-f30553347322 took 31 ms
"uuid": "123e4567-e89b-12d3-a456-426614174000"
"id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message"
tool_use_id: toolu_017qEkVzzPb7b7o4FkgJLF23
call_id=call_UtYwHmwWekzvq83m8Rb9K8jJ
"requestId": "req_011CSHoEeqs5C35K2UUqR7Fy"
chatcmpl-9AbCdEfGhIjKlMnOpQrStUvWxYz12
price_1MoBy5LkdIwHu7ixZhnattbh and cus_NffrFeUfNV2Hib
"integrity": "sha512-9NET910DNaIPngYnLLPeg+Ogzqsi9uM4mSboU5y6p8S5DzMTVEsJZrawi+BoDNUVBa2DhJqQYUFvMDfgU062LQ=="
    --hash=sha256:8b5f3f5e1f4b7a2c9d0e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6b7c
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
checksum = "4f5c8e1a6b2d3c7e9f0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c1d2e"
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7vbqajDhA me@laptop
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
token: string
password: str
const token = await getToken()
password = os.environ["DB_PASSWORD"]
api_key=settings.api_key
secret = secrets.token_hex(32)
max_tokens: 4096
"input_tokens": 12345, "output_tokens": 678
token_count = 15
cache_key = f"user:{id}"
primary_key=True
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
NPM_TOKEN: ${{ secrets.NPM_TOKEN }}
curl -H "Authorization: Bearer $GITHUB_TOKEN" https://api.example.com
export API_KEY=<your-api-key>
API_KEY=YOUR_API_KEY_HERE
password: xxxxxxxx
password: ********
def check_password(password: str, hashed: bytes) -> bool:
if (token === null) return unauthorized();
    token = self.next_token()
for key, value in secrets.items():
git config user.email me@example.com
https://example.com/docs/tokens?page=2
postgresql://localhost:5432/app
redis://cache:6379/0
ssh git@github.com:acme/api.git
user@host:/var/log/app.log
Basic support was added in 2.0
The bearer of this letter is a friend.
[redacted:github] was here
kubectl get secret my-secret -o yaml
aws secretsmanager get-secret-value --secret-id prod/db
Set-Cookie is parsed by the client
AUTH_ENABLED=true
PASSWORD_MIN_LENGTH=12
TOKEN_EXPIRY_SECONDS=3600
keyboard: "us-intl"
monkey = "banana"
"keywords": ["memory", "agent"]
public_key_path: ~/.ssh/id_ed25519.pub
author: Ada Lovelace
"tokenType": "bearer"
foreign key (user_id) references users (id)
PRIMARY KEY (tenant, agent_id)
sort_key=created_at
""".strip("\n").split("\n")


def test_nothing_of_a_secret_survives_in_any_context() -> None:
    assert len(secrets()) >= 200
    assert len({secret.value for secret in secrets()}) >= 150
    assert len(contexts()) >= 10
    tried, _, leaked = measure_recall(seed=0)
    names = sorted({(secret.provider, context.name) for secret, context in leaked})
    assert len(leaked) <= tried // 100, names


@pytest.mark.parametrize("line", UNTOUCHED)
def test_what_is_no_secret_stays(line: str) -> None:
    assert redact(line) is line


def test_a_long_text_of_such_lines_stays() -> None:
    random.Random(3).shuffle(lines := list(UNTOUCHED))
    text = "\n".join(lines * 20)
    assert redact(text) is text


def test_the_name_stays_readable_and_only_the_value_goes() -> None:
    value = "Tr0ub4dor" + "&3!xYz"
    assert redact(f"export DB_PASSWORD='{value}' && run") == "export DB_PASSWORD='[redacted:password]' && run"
    assert value not in redact(f'{{"user": "bob", "password": "{value}"}}')


@given(
    st.text()
    | st.lists(st.sampled_from([*UNTOUCHED, *(s.value for s in secrets(1)[:80]), "=", ": ", '"', "\n"])).map("".join)
)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert scan(once) == []


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_is_taken(text: str) -> None:
    findings = scan(text + "\ud800\0" + text)
    assert findings == sorted(findings, key=lambda each: each.start)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "sk-",
        "token=",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "eyJ",
        "password: ",
        "A" * 64 + "\n",
        "://a:",
        "Bearer ",
        '\\"',
    ],
)
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        started = time.perf_counter()
        redact(text)
        return time.perf_counter() - started

    redact(unit * 1000)
    small, large = min(seconds(50_000) for _ in range(3)), min(seconds(1_000_000) for _ in range(2))
    assert large < 20 * small * 6 + 0.5, (small, large)


def test_the_rules_have_a_version() -> None:
    assert VERSION == "redact_v1"
