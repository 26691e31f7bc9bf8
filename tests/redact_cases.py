"""Lines that must stay as they are, and lines in which one word must go. No real key stands here: see the generator."""

from __future__ import annotations

# Realistic text without a secret. One line each; \n in a line is a line break.
NEGATIVES = (
    "WIFI:T:nopass;S:cafe;;",
    "password: !ENV DB_PASSWORD",
    "password: !GetAtt Db.Secret1",
    "'password' => 'required|string|min:8',",
    "replicates a secret to eu-west-3 and copies the token to us-east-1",
    "the 32k tokens `jev-1.13` takes; 1120 tokens = $0.134/image",
    "id='pplx-embed-context-v1-4b'",
    "--secrets HF_TOKEN python:3.12",
    "from bt import L2CAP_LM_AUTH as L2CAP_LM_AUTH",
    'PASSWORD_CHARSET "0123456789abcdef"',
    '"encryptionKey": "arn:aws:kms:us-east-1:123456789012:key/7e859208-ba6e-4593-a79a-546f20d2471b"',
    '"S3Key": "a8Xk29bQvM/lambda/"',
    '"ClientRequestToken": "7e859208-ba6e-4593-a79a-546f20d2471b"',
    "--client-token 7e859208-ba6e-4593-a79a-546f20d2471b --starting-token eyJOZXh0VG9rZW4iOiBudWxs",
    "password: argon2id$m=65536",
    'an expression identified by "state", "a/etc/passwd" or "a/../file.txt"',
    'the zip file, htpasswd -b f bob "$PW", net use Z: /delete, openssl enc -k "$KEY"',
    '"password": ["MasterUsername", "MasterUserPassword"], tokens = ["the", "cat9"]',
    "jwt.sign(payload, 'secret'), hash_password('plain'), process.env.API_KEY || 'none'",
    "Pass `verbosity=0` or httpx2.request to it; 12 tests pass 3.11.7",
    "log in with acme/app2 or as admin / operator1",
    "stored as password hashes, used as token ids; archive2024.zip is password protected",
    "pw: required, password={db_password}, app password: see your bank",
    "パスワードを入力してください、パスワード「必須」",
    "MAX_TOKENS=16384 INPUT_TOKENS=128k CACHE_KEY=user:42:v3",
    '"nextToken": "CiQ5mZx7aB3dE5fG7hI9jK1lm", "syncToken": "CPDAlvWDx70C3f9kQ2m"',
    "src/pool.c:5432:12:3: error: expected expression",
    "docker run -p 127.0.0.1:5432:5432 postgres:16",
    "localhost:5432:app:deploy:$PGPASSWORD",
    # prose
    "The password must be at least 12 characters long.",
    "Password: required",
    "reset your password: click here",
    "Forgot your password? Click here to reset it.",
    "Please enter your password to continue.",
    "Your password was changed 3 days ago.",
    "the password is hashed with bcrypt before it is stored",
    "The token is invalid or has expired.",
    "token limit is 200k for this model",
    "I used 12345 tokens in 3 minutes.",
    "Input tokens: 12345, output tokens: 678",
    "A bearer token is sent in the Authorization header.",
    "Use basic authentication for the staging server.",
    "The secret to good bread is time.",
    "The key to success is 100% effort.",
    "His passport number was on the form.",
    "We rotate API keys every 90 days.",
    "The api key is stored in the keychain, not in the repository.",
    "Don't commit secrets: use a vault.",
    "access token: see the dashboard",
    "She passed the exam with 95 points.",
    "Tests pass: 12, fail: 0",
    "PASS src/app.test.ts (5.123 s)",
    "--- PASS: TestLogin (0.02s)",
    "credentials: none required",
    "The password field is of type text.",
    "password is SHA-256 hashed, salted and base64-encoded",
    "Auth is OAuth2 with PKCE.",
    "the author: Jane Doe, 2nd edition",
    "Password strength: strong",
    "Passwords: 3 weak, 2 reused",
    "username and password are sent over TLS1.3",
    "The password is set to expire in 90 days.",
    "password reset to its initial value",
    "login: required, pass: optional",
    "The password is: required",
    "password - which one?",
    "密码: 必须包含大小写字母和数字",
    "密码是加密存储的，至少8个字符",
    'password: "パスワードを入力してください"',
    "パスワード：8文字以上",
    "пароль: обязательное поле",
    "token: Зашифрованный",
    # code that handles secrets without containing one
    "token: string",
    "token?: string;",
    "const token = await getToken()",
    "const { token } = useAuth();",
    'password = os.environ["DB_PASSWORD"]',
    "password = os.getenv('DB_PASSWORD', '')",
    "api_key=settings.api_key",
    "secret = secrets.token_hex(32)",
    "max_tokens: 4096",
    '"max_tokens": 8192, "temperature": 0.2',
    '"input_tokens": 12345, "cache_read_input_tokens": 99',
    "token_count = 15",
    'cache_key = f"user:{id}"',
    "primary_key=True",
    "tokenizer = AutoTokenizer.from_pretrained('gpt2')",
    "tokens = text.split()",
    "for token in tokens: print(token.text)",
    "if token == '(':",
    "token = tokens[i + 1]",
    "password: hashedPassword,",
    "password=password",
    "password=None, token=None",
    "self.password = password",
    "this.token = response.data.token;",
    "def login(username: str, password: str) -> Token:",
    "password: z.string().min(8).max(128)",
    "password: Optional[str] = None",
    "private readonly apiKey: string;",
    "apiKey: process.env.OPENAI_API_KEY,",
    "const apiKey = config.get('apiKey');",
    "headers['Authorization'] = `Bearer ${token}`",
    'headers={"Authorization": f"Bearer {token}"}',
    '"Authorization": "Bearer " + access_token',
    "req.headers.authorization?.split(' ')[1]",
    "secret: crypto.randomBytes(32).toString('hex'),",
    "password: bcrypt.hashSync(plain, 10),",
    "let token = jwt.sign(payload, secret);",
    'password := os.Getenv("DB_PASSWORD")',
    "token, err := auth.NewToken(ctx)",
    'String password = System.getenv("PW");',
    "private String password;",
    "char *password = NULL;",
    '<input type="password" name="password" placeholder="Password">',
    '<label for="token">Token</label>',
    "<password></password>",
    "password_hash = hash_password(plain)",
    "token_type: bearer",
    "token_url: https://auth.acme.io/oauth/token",
    "secret_name: my-app-secrets",
    "secretKeyRef:\n  name: db\n  key: password",
    "password_file: /run/secrets/db_password",
    "PRIVATE_KEY_PATH=./keys/id_ed25519",
    "PWD=/home/bob/code/app2",
    "KEYBOARD_LAYOUT=de-latin1",
    "sort_key = lambda row: (row.date, row.id)",
    "public_key = load_pem_public_key(data)",
    "foreign_key: user_id",
    "nextPageToken: CAUQAA3f9kQ2mZx7",
    "session_key: claude-code:019c8a70-dda7-7f33-98ea-f30553347322",
    # references and placeholders
    "token: ${{ secrets.NPM_TOKEN }}",
    "export GITHUB_TOKEN=$GITHUB_TOKEN",
    'export TOKEN="$(gh auth token)"',
    'curl -H "Authorization: Bearer $TOKEN" https://api.acme.io',
    'curl -u "$USER:$PASS" https://acme.io',
    "OPENAI_API_KEY=<your-api-key>",
    "API_KEY=YOUR_API_KEY_HERE",
    "api_key: xxxxxxxxxxxxxxxx",
    "password: ********",
    "ANTHROPIC_API_KEY=sk-ant-...",
    "postgres://user:${DB_PASSWORD}@db:5432/app",
    "postgres://user:<password>@db:5432/app",
    "mysql -u root -p app",
    "docker login --username bob --password-stdin",
    'password: "{{ vault_db_password }}"',
    'echo "$TOKEN" | docker login -u bob --password-stdin',
    "PASSWORD=${DB_PASSWORD:-$PGPASSWORD}",
    "PASSWORD=${DB_PASSWORD:-changeme}",
    'token = f"tok_{user}_{i:04d}"',
    "postgres://{user}:{quote_plus(password)}@{host}/app",
    "postgres://app:...@db:5432/app",
    "Authorization: Bearer AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "password=[redacted:password] token: [redacted:secret]",
    "the old key was [redacted:github]: revoked2",
    # ids, digests, public things
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "Merge 3f2a9c1 into main",
    "session 019c8a70-dda7-7f33-98ea-f30553347322 resumed",
    '"requestId": "req_011CRk3mT9vXy2LqWz8bNfHd"',
    '"id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message"',
    '"tool_use_id": "toolu_01A09q90qw90lq917835lq9"',
    "call_9Yh2kLm3Qr8sTu1VwXyZ0aBc finished",
    "chatcmpl-9Rk2mT3vXy4LqWz8bNfHdJpQsUwY returned 200",
    "price_1MoBy5LkdIwHu7ixZhnattbh for cus_NffrFeUfNV2Hib",
    "pk_test_51MoBy5LkdIwHu7ixZhnattbh",
    "sha512-3jBUVKt+0c6RkX2m9YzQ1aLwP5vNfHdJ8sTuGqWx7EoCbIyKr4ZlMnAhFgSdVpBiXeOjUtQwRcYkL2m==",
    '"integrity": "sha512-3jBUVKt+0c6RkX2m9YzQ1aLwP5vNfHdJ8sTuGqWx7Eo=="',
    "requests==2.31.0 --hash=sha256:58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  app.tar.gz",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7v2m9YzQ1aLwP5vNfHdJ8sTuGqWx7Eo bob@laptop",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG9YzQ1aLwP5vNfHdJ8sTuGqWx7EoCbIyKr4ZlMnAh bob@laptop",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU\n-----END PUBLIC KEY-----",
    'if "-----BEGIN RSA PRIVATE KEY-----" in text: raise ValueError',
    'etag: W/"5e8f-3f2a9c1b7d"',
    "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8 github.com",
    "https://github.com/acme/app/commit/9fceb02d0ae598e95dc970b74767f19372d61af8",
    "http://localhost:3000/@vite/client",
    "https://registry.example.org/@types/node/-/node-20.1.0.tgz",
    "git@github.com:acme/app.git",
    "ssh://git@github.com:22/acme/app.git",
    "mailto:bob@acme.io?subject=token",
    "npm:string-width@^4.2.0",
    "docker run -u 1000:1000 -p8080:80 app",
    "python -u train.py --max-tokens 2048 --tokenizer gpt2",
    "mkdir -p build && patch -p1 < fix.diff",
    "v1.2.3-beta.4 tokenizers==0.15.2",
    "2024-05-01T10:00:00Z INFO token refreshed in 32ms",
    '{"type":"thinking","signature":"EqoBCkgIARABGAIiQL2m9YzQ1aLwP5vNfHdJ8sTuGqWx7EoCbIyKr4ZlMnAhFgSdVpBi"}',
    '{"uuid":"3f2a9c1b-7d4e-4c58-9a6b-0d1e2f3a4b5c","parentUuid":null,"sessionId":"019c8a70-dda7-7f33-98ea-f30553347322"}',
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-x1Y2z3",
    '"AWS::IAM::AccessKey": "62d91b17309e76c8"',
    "#define CKF_TOKEN_INITIALIZED 0x00000400UL",
    "password_regex = r'(?i)(?:password:)|(?:passphrase for key)'",
    "| Option | Default |\n| password | none |",
    "| password | works? |\n|---|---|\n| empty | no |\n| too short | no |",
    "| Token | Purpose |\n|---|---|\n| `syntaxNumber` | Comments2 |\n| `mdHeading` | h1 to h6 |",
    "NAME      SECRETS   AGE\ndefault   0         10d\nbuilder   2         3d",
    " column_name | data_type\n-------------+-----------\n password    | character varying(255)",
    "user,password_changed_at,role\nbob,2026-01-01,admin2",
    'from .tokens import (\n    "Tokens",\n    "AsyncWebhooks2",\n)',
    "INSERT INTO users (email, password) VALUES ($1, $2), (%s, %s)",
    "apiVersion: v1\nkind: ConfigMap\ndata:\n  LOG_LEVEL: debug2\n  id: Zm9vYmFyMTIz",
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db-42\n  uid: Zm9vYmFyMTIz",
    "Recovery codes: store them offline, e.g. in 2 places",
    "Cache restored from key: Linux-pip-9fceb02d0ae598e95dc970b74767f19372d61af89fceb02d0ae598e95dc970b7",
    'password: @Value("${db.password}")',
    "Password\nForgot your password?\nToken\nOAuth2",
    "the vault login works, see app_prod_settings_module_v2",
)

# More of them, as they stand in code, logs, manuals and talk.
ORDINARY = r"""
apiKey: !Ref ApiKeyParameter2
password: !vault |
token: 'refresh'
"tokenType": "Bearer", "expiresIn": 3600
"secretName": "db-secret-v2"
credentials: ServiceAccountCredentials.from_json_keyfile_name('key2.json')
passwordResetToken: uuidv4(),
SELECT password FROM users WHERE id=1
UPDATE users SET password = ? WHERE id = 2
password = $1 AND token = $2
password = :password1
password=@p1
invalid password for user bob2
password authentication failed for user "postgres2"
Access denied for user 'root'@'localhost' (using password: YES)
Enter passphrase for key '/home/bob/.ssh/id_ed25519':
token=***
token: Token<string>
secret?: Buffer
password!: string;
Password string `json:"password" validate:"min=8"`
password: String,
token: Option<String>,
let token = Token::new(16);
@Value("${db.password}") String password;
"password": {"type": "string", "minLength": 8}
--token-color: #ff00aa
secretKeyRef: {name: db2, key: password1}
password = var.db_password
token = data.aws_eks_cluster_auth.main2.token
secret_id = aws_secretsmanager_secret.db2.id
read -s PASSWORD
if [ -z "$TOKEN" ]; then
echo "Token: $TOKEN"
TOKEN=${1:-}
PASS=$(openssl rand -base64 32)
docker login -u $USER -p $PASS
the token `<eos>` is id 2
token 50256 is the end-of-text token
special token <|endoftext|>
key insight: caching2 helps
The secret ingredient is 2 tbsp sugar.
password manager 1Password
API key v2 endpoints
passcode is 6 digits
auth: JWT (RS256)
session token expires in 3600s
Token IDs: [101, 2023, 2003]
"bos_token": "<s>", "eos_token": "</s>"
token_embedding_table 50304x768
tokens/s: 45.3
tokens_per_second=123.4
sorted(d, key=itemgetter(1))
hmac.new(key, msg, sha256)
src/auth/token2.ts:10:5 - error TS2345
tests/test_token_v2.py::test_key1 PASSED
Authorization: Bearer <token>
WWW-Authenticate: Bearer realm="api2"
Set-Cookie: theme=dark; Path=/
"password": "Passwort"
"passwordHint": "Mindestens 8 Zeichen"
password reset sent to bob2@acme.io
| token | string | The API token |
| `api_key` | `str` | Your key |
pass 2 of 3
nginx:1.25@sha256:6db391d1c0cfb30588ba0bf72ea999404f2764febf0f1f196acd5867ac7efa7e
/@babel/core@7.1.0(supports-color@8.1.1):
"@types/node@npm:^20.1.0":
resolution: {integrity: sha512-3jBUVKt+0c6RkX2m9YzQ1aLwP5vNfHdJ8sTuGqWx7EoCbIyKr4ZlMnAhFgSdVp==}
ssh -i key.pem ubuntu@ec2-1-2-3-4.compute.amazonaws.com
scp bob@10.0.0.1:/tmp/x .
http://user@host:8080/
12:34:56 bob@host.example.io:22 connected
mongodb://localhost:27017/app2
redis://localhost:6379/0
git+ssh://git@github.com/acme/app.git#v1.2.3
password: Joi.string().pattern(new RegExp('^[a-zA-Z0-9]{3,30}$'))
const TOKEN_REGEX = /^[A-Za-z0-9_-]{20,}$/
token.length > 20 && token.startsWith('sk-')
assert token.startswith("ghp_")
if key.startswith('sk-ant-'):
password = input("Password: ")
password = getpass.getpass("Password: ")
PASSWORD_HASHERS = ['django.contrib.auth.hashers.Argon2PasswordHasher']
AUTH_PASSWORD_VALIDATORS = [...]
SECRET_KEY = env('SECRET_KEY')
SECRET_KEY = config("SECRET_KEY", default="")
ACCESS_TOKEN_EXPIRE_MINUTES = 30
TOKEN_ALGORITHM = "HS256"
jwt.decode(token, SECRET_KEY, algorithms=["HS256"])
oauth2_scheme = OAuth2PasswordBearer(tokenUrl="token")
token: str = Depends(oauth2_scheme)
password: SecretStr = Field(..., min_length=8)
api_key: str | None = None
client = OpenAI(api_key=os.environ["OPENAI_API_KEY"])
client = Anthropic(api_key=api_key)
const apiKey = import.meta.env.VITE_API_KEY;
apiKey: string | undefined;
"apiKey": "${env:API_KEY}"
authToken: ctx.session.token2,
export default { secret: process.env.SECRET2 }
secrets: inherit
token: ${{ github.token }}
password: ${DB_PASSWORD:?missing}
env: { name: TOKEN, valueFrom: { secretKeyRef: { name: x, key: y } } }
keyboard: { key: 'Enter', code: 13 }
onKeyDown={(e) => e.key === 'Escape2'}
<Foo key={item.id} token={token} />
<li key="item-123-abc">
map.set('key1', 'value1')
redis.get("user:123:token")
cache.set("session:abc123", data)
localStorage.getItem('token')
localStorage.setItem('token', response.token)
document.cookie = `theme=${theme}`
cookies.get('session')
Foreign key: orders.user_id -> users.id
PRIMARY KEY (id2, name3)
KEY `idx_user_id_2` (`user_id`)
CONSTRAINT fk_token_2 FOREIGN KEY
the API key you provided is invalid (401)
Error: Invalid API key provided: sk-proj-********************abcd
Incorrect API key provided: sk-abc...wxyz
authentication token manipulation error
passwd: password updated successfully
bob:x:1000:1000:Bob:/home/bob:/bin/bash
Password for 'https://bob@github.com':
Username for 'https://github.com':
remote: Invalid username or password.
fatal: Authentication failed for 'https://github.com/acme/app2.git/'
gpg: key 3AA5C34371567BD2: public key "Bob <bob@acme.io>" imported
Key fingerprint = 9554 F04D 7259 F041 24DE  6B47 6D5A 82AC 7E37 093B
ssh-keygen -t ed25519 -C "bob@acme.io"
The key's randomart image is:
Fingerprint: SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDDQvDXCnAjR7kTPqk
serial: 0A:1B:2C:3D:4E:5F
MAC 00:1B:44:11:3A:B7
uuid: 123e4567-e89b-12d3-a456-426614174000
trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7
"thread_id": "thread_abc123DEF456ghi789", "run_id": "run_abc123DEF456ghi789"
"call_id":"call_abc123DEF456ghi789jkl","output":"ok"
"encrypted_content":"gAAAAABnZx9Qm3vK8sTuGqWx7EoCbIyKr4ZlMnAhFgSdVpBi"
"cacheKey": "a1b2c3d4e5f6a7b8c9d0"
"prompt_cache_key": "019c8a70-dda7-7f33-98ea-f30553347322"
"idempotency_key": "123e4567-e89b-12d3-a456-426614174000"
S3 key: uploads/2024/05/IMG_1234.jpg
object_key=backups/db-2024-05-01.tar.gz
"Key": "photos/AbC123/xyz.png"
partition_key = "user#12345"
Password must contain 1 uppercase, 1 digit and 1 symbol (e.g. !@#$).
password: min. 8 chars, 1 number
Passwords need 8-16 characters
token budget: 200_000
tokens: 1,234 in / 567 out
Token usage: 45k/200k (22%)
The password is at least 8 characters, e.g. with 2 digits.
key=value pairs, e.g. foo=bar2
credential helper: osxkeychain
AWS_PROFILE=prod2 AWS_REGION=eu-west-1
GITHUB_REPOSITORY=acme/app2
secret santa 2024: who got whom?
the pass is 10 km long
boarding pass: gate B12
He scored 3 touchdown passes: 12, 34 and 56 yards
my key takeaway is 3x faster builds
The key is in drawer 12b.
the token ring network from 1985
auth_provider_x509_cert_url: https://www.googleapis.com/oauth2/v1/certs
token_uri: https://oauth2.googleapis.com/token
client_x509_cert_url
sk-learn-like-api-for-time-series
task-sk-refactor-module-2-part-b
css class "sk-circle-fade-dot-12"
disk-usage-report-2024-05-01-final
a-very-long-kebab-case-branch-name-for-ticket-12345
feature/ABC-1234-add-token-refresh-to-auth-client
pip install git+https://github.com/acme/app.git@v1.2.3
https://user.github.io/page?tab=readme#token
https://x.io/callback?code=abc&state=xyz
https://maps.google.com/?q=1,2&key=
npm_config_registry=https://registry.example.org/
npm_package_version=1.2.3
hf_hub_download(repo_id="meta-llama/Llama-2-7b")
re_compile_pattern_with_flags_and_groups
pa-something-quite-long-but-made-of-words-only-here
xai-explainability-toolkit-for-tabular-data
AKIA is the prefix of access key ids.
ghp_ tokens are personal access tokens
glpat-xxxxxxxxxxxxxxxxxxxx
xoxb-your-token-here
sk_test_xxxxxxxxxxxxxxxxxxxxxxxx
AIzaSyXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX
-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----
eyJ is how a JWT starts
basic recipes for beginners
Basic dXNl is cut off
login(username, password)
auth=(user, password)
requests.get(url, auth=HTTPBasicAuth(user, pw))
Bearer tokens are opaque2 strings
curl -u user:$PASSWORD https://acme.io
curl -H "Authorization: token ${GITHUB_TOKEN}" https://api.github.com
mysql -u root -p"$MYSQL_ROOT_PASSWORD" app
PGPASSWORD="$DB_PASS" psql -h db
sshpass -p "$PASS" ssh host
echo $PASSWORD | sudo -S apt update
machine learning login page password field
""".strip().splitlines()

# In every template § is a password: it goes, all of it, and everything around it stays.
PASSWORDS = (
    "password: §",
    "DB_PASSWORD=§",
    "export DB_PASSWORD=§",
    'export DB_PASSWORD="§"',
    "DB_PASSWORD='§' ./run.sh",
    "set -x DB_PASSWORD §",
    'db_password = "§"',
    "password = '§'",
    "'password': '§',",
    '{"password": "§", "port": 1}',
    '{\\"password\\": \\"§\\"}',
    '{\\\\\\"password\\\\\\": \\\\\\"§\\\\\\"}',
    "password: '§' # staging",
    "tool --password=§ --verbose",
    "tool --password § --verbose",
    'tool --password "§"',
    '["--password", "§"]',
    "curl -u bob:§ https://acme.io",
    "localhost:5432:app:deploy:§",
    "echo 'db.acme.io:5432:*:deploy:§' >> ~/.pgpass",
    "*:*:*:postgres:§",
    "WIFI:T:WPA;S:My Home;P:§;H:true;;",
    "WIFI:S:home;T:WPA;P:§;;",
    "curl -ubob:§ https://acme.io",
    "curl -s --user 'bob:§' https://acme.io",
    "mysqldump -u root -p§ app",
    "mysql -u root --password=§ app",
    "Server=db;Uid=sa;Pwd=§;Encrypt=true",
    "bob:§@tcp(127.0.0.1:3306)/app",
    "https://acme.io/?user=bob&password=§&x=1",
    "My password is §",
    'the password is "§".',
    "password is “§”",
    "the password for staging is §",
    "change the password to § please",
    "password -> §",
    "the root password set to § last week",
    "password reset to §",
    "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:-§}",
    'DB_PASSWORD="${DB_PASSWORD:-§}"',
    "DB_PASS: §",
    "Login: bob\nPass: §",
    "use § as the password",
    "username: bob password: §",
    "Passwort: §",
    "contraseña: §",
    "пароль: §",
    "密码: §",
    "**Password:** §",
    "**Password**: `§`",
    "| password | § |",
    "<password>§</password>",
    '<entry name="password">§</entry>',
    "<key>password</key>\n<string>§</string>",
    '<input type="password" value="§">',
    "<b>Password:</b> §",
    "machine acme.io login bob password §",
    "machine acme.io\n  login bob\n  password §\n",
    "- name: DB_PASSWORD\n  value: §",
    '{"name": "DB_PASSWORD", "value": "§"}',
    "kubectl create secret generic db --from-literal=password=§",
    "docker run -e POSTGRES_PASSWORD=§ postgres",
    "ENV DB_PASSWORD §",
    'char password[] = "§";',
    'password string = "§"',
    'const password: string = "§";',
    ":password => '§'",
    "$password = '§';",
    "define('DB_PASSWORD', '§');",
    'os.Setenv("DB_PASSWORD", "§")',
    'os.getenv("DB_PASSWORD", "§")',
    'requests.get(url, auth=("bob", "§"))',
    "password=SecretStr('§')",
    "CREATE USER bob IDENTIFIED BY '§';",
    "sshpass -p '§' ssh acme.io",
    "redis-cli -h db -p 6379 -a §",
    "docker login -u bob -p §",
    "echo '§' | docker login -u bob --password-stdin",
    "openssl rsa -passin pass:§ -in key.pem",
    'variable "db_password" {\n  default = "§"\n}',
    "Password:\n§\n",
    "password: |\n  §\n",
    "spring.datasource.password=§",
    "PGPASSWORD=§ psql -h db",
    "if password == '§':",
    "password <- '§'",
    "user=bob password=§ host=db",
    "(password=§)",
    "password=§, user=bob",
    "first\\npassword=§\\nlast",
    "login('bob', '§')",
    'name="password"\r\n\r\n§\r\n--',
    "ConvertTo-SecureString '§' -AsPlainText",
    "the password is: §",
    "password - § (staging)",
    "Das Passwort lautet §",
    "la password è §",
    "密码是 §",
    "密码：§，请保存",
    "パスワードは「§」です",
    "パスワード「§」",
    "管理者パスワードを§に変更しました",
    "비밀번호는 § 입니다",
    "Passwort für den Server: §",
    "Das Datenbankpasswort heißt §",
    "le mot de passe « § »",
    "la contrasena del wifi: §",
    "hasło: §",
    "lösenordet är §",
    "mein PW ist §",
    "rootpw=§",
    "requirepass: §",
    "password is: \n\n    §\n",
    "the password for elastic (see the manual):\n  §",
    "admin:\n  -storepass §",
    "await page.fill('#password', '§')",
    "driver.find_element(By.ID, 'password').send_keys('§')",
    "cy.get('[name=password]').type('§')",
    "user, password = 'bob', '§'",
    "username, password = ('bob', '§')",
    'GRANT ALL TO x IDENTIFIED BY "§"',
    "ldapsearch -x -D cn=admin -w § -b dc=ex",
    "zip -P § out.zip a.txt",
    "7z x -p§ backup.7z",
    "htpasswd -b .htpasswd alice §",
    "openssl enc -aes-256-cbc -in a -k §",
    "ansible-vault encrypt_string '§' --name 'db_pass'",
    "security add-generic-password -a bob -w '§'",
    "net use Z: \\\\srv\\share § /user:bob",
    "smbclient //srv/share -U bob%§",
    "az login --service-principal -u bob -p § --tenant acme",
    """subprocess.run(["curl", "-u", "bob:§", url])""",
    '{"name":"DB_PASSWORD","value":"§"}',
    'variable "db_password" {\n  type = string\n  default = "§"\n}',
    '<password encoding="plain">\n  §\n</password>',
    "password | §\n",
    "| user | password |\n|---|---|\n| bob | § |\n",
    " user | password \n------+----------\n bob  | §\n(1 row)",
    "+------+----------+\n| user | password |\n+------+----------+\n| bob  | § |\n+------+----------+",
    "user,password,role\nbob,§,admin",
    'user;password\n"bob";"§"',
    "user\tpassword\nbob\t§",
    "USER   PASSWORD       ROLE\nbob    §   admin",
    "INSERT INTO users (name, password) VALUES ('bob', '§');",
    "INSERT INTO users (password, at) VALUES ('§', now())",
    "kind: Secret\nstringData:\n  login: §\ntype: Opaque",
    "net use Z: \\\\srv\\share /user:bob §",
    "rabbitmqctl add_user app §",
    "useradd -p § bob",
    "Пароль от базы — §",
    "adgangskode: §",
    "heslo: §",
    "şifre: §",
    "סיסמה: §",
    "['mysql', '-uroot', '-p§']",
)

# The same, § being a token or key without a shape.
TOKENS = (
    "export GITHUB_TOKEN=§",
    "X_TOKEN=§",
    "set -gx GITHUB_TOKEN §",
    "setx OPENAI_API_KEY §",
    "$env:API_KEY='§'",
    '"token": "§"',
    "token: §",
    "os.environ['X_TOKEN'] = '§'",
    "process.env.API_KEY = '§'",
    "tool --token §",
    'tool --api-key "§"',
    "Authorization: Bearer §",
    "authorization: token §",
    "'Authorization': 'Bearer §'",
    'headers.set("Authorization", "Bearer §")',
    "Proxy-Authorization: Bearer §",
    'curl -H "X-Api-Key: §" https://acme.io',
    "X-Auth-Token: §",
    "Set-Cookie: session=§; Path=/; HttpOnly",
    'curl -b "session=§" https://acme.io',
    "git clone https://§@github.com/acme/app.git",
    "https://acme.io/a?access_token=§&x=1",
    "https://acme.io/a?key=§&x=1",
    "the api key is §",
    "the token I use is §",
    "token set to §",
    "API_KEY=${API_KEY:-§}",
    "Access Token: `§`",
    "Client Secret: §",
    "| API key | `§` |",
    '<add key="ApiKey" value="§"/>',
    "&quot;token&quot;:&quot;§&quot;",
    "ENV API_KEY §",
    '#define API_KEY "§"',
    'let token: &str = "§";',
    'token = String::from("§")',
    "Here is the API key:\n\n```\n§\n```",
    "//registry.example.org/:_authToken=§",
    "API_KEY_OPENAI=§",
    "OPENAI_KEY=§",
    "aws configure set aws_secret_access_key §",
    "SECRET_KEY_BASE=§",
    "webhook_secret: §",
    "redirect?token%3D§",
    "my key is §",
    "the api key is: §",
    "API Key：§",
    "令牌是§。",
    "$ yarn start\nTOKEN=§",
    "SYNC_TOKEN=§",
    "FLASK_SESSION_KEY=§",
    "cache_secret: §",
    "PUBLIC_API_SECRET=§",
    "SECRET_STORE=§",
    "\x1b[32mtoken\x1b[0m: \x1b[33m§\x1b[0m",
    '\\u001b[36m"token"\\u001b[0m: \\u001b[32m"§"\\u001b[0m',
    "to\u200bken: §",
    "token\xa0=\xa0'§'",
    "token: <code>§</code>",
    "Der API-Schlüssel ist §",
    "la clé API est §",
    "APIキーは§です",
    "use `§` as the password",
    "try § as password",
    "nimm § als Passwort",
    "requirepass §",
    "user bob, pass §",
    "the password's §",
    "ODBC;UID=u;PWD={§};",
    "process.env.API_KEY || '§'",
    "os.environ.get('API_KEY') or '§'",
    "token = (\n    '§'\n)",
    "tokens:\n  - §",
    "jwt.sign(payload, '§')",
    "hmac.new(b'§', msg)",
    "Fernet(b'§')",
    'WiFi.begin("HomeNet", "§");',
    'builder.WithPassword("§")',
    'gh secret set DEPLOY_KEY --body "§"',
    "snmp-server community § RO",
    "sqlplus scott/§@ORCL",
    "Unseal Key 1: §",
    "ENC_KEY=§",
    "CLIENT_TOKEN=§",
    "GET /cb?code=§&state=xyz",
    "- name: STRIPE_KEY\n  value: §",
    '{"Name":"SecretAccessKey","Value":"§"}',
    "%7B%22token%22%3A%22§%22%7D",
    "| Service | API key |\n|:--|--:|\n| Mail | `§` |",
    "id,api_key\n1,§",
    "Client secret\n§\n",
    "INSERT INTO keys (id, token) VALUES (1, '§')",
    "apiVersion: v1\ndata:\n  dsn: §\nkind: Secret\nmetadata:\n  name: db",
    'apiVersion: v1\nkind: Secret\ndata:\n  a: "§"\n---\nkind: ConfigMap\ndata:\n  b: debug',
    '{"apiVersion":"v1","data":{"dsn":"§"},"kind":"Secret"}',
    "vault login §",
    "gh auth login --with-token <<< §",
    "https://open.feishu.cn/open-apis/bot/v2/hook/§",
    "https://mainnet.infura.io/v3/§",
    "AES.new(b'§', AES.MODE_GCM)",
    'DriverManager.getConnection(url, "app", "§")',
)

# In every text the word in § goes, which no grammar ties to what tells of it.
NEAR = (
    # near a noun or an act, in a sentence of its own or behind a question
    "The root login on the old box was reset this morning. It's now §Pebble-Tart-41§, try again?",
    "You can sign in as bob with §Otter!Lamp7§ and then open the report.",
    "Q: which password did you take for the router?\nA: first admin, then §Kettle7Brook§, which let me in.",
    "§Walnut#Pier9§ is what I put as the admin password",
    "Mein Kennwort ist geändert. Ab sofort gilt „§Ziegelstein_83§“, bitte nicht weitersagen.",
    "测试服务器的密码是多少?\n昨天换成 §Lantern@4471§ ,你再试一次。",
    # digits near what they open
    "The garage keypad wants §739204§, then the star.",
    "The SIM asked for its PUK. §50912873§ worked.",
    "Никому не говорите код: §731-208§. Спасибо.",
    # in quotes before its noun, behind a noun's 's
    'Use "§velvet tractor mountain§" as the passphrase for the backups.',
    # a password with a dot is no attribute where none can be
    "wget --user=bob --password=§brass.lantern§ https://acme.io/a",
    "sudo mount -t cifs //nas/a /mnt -o username=bob,password=§brass.lantern§,uid=1000",
    "jdbc:mysql://db/app?user=bob&password=§brass.lantern§&useSSL=false",
    # what a command takes or prints, defaults of code, a hash of it
    "kubectl get secret web -o jsonpath='{.data.p}' | base64 -d\n§brass-Lantern-77§",
    "New-LocalUser -Name bob -Password (ConvertTo-SecureString '§Brass-Lantern§' -AsPlainText -Force)",
    'password: <%= ENV.fetch("APP_DB") { "§brass-lantern§" } %>',
    "UPDATE users SET user_pass = MD5('§BrassLantern7§') WHERE id = 3;",
    "password: >-\n  §Brass7-Lantern§\n",
    '<input type="password" name="p" value="§brass-Lantern§">',
    # a key that is split before its sixteenth letter: over lines, strings, marks; bytes apart, octal
    "the mail broke it: glpat-\n§aB3dE5fG7hJ9kL1mN3pQ§",
    "k = 'sk_live_aB3dE5fG' '§7hJ9kL1mN3pQ5rS7§'",
    "67 68 70 5f §61 42 33 64 45 35 66 47 37 68 4a 39 6b 4c 31 6d 4e 33 70 51 35 72 53 37§",
    # cards without a check digit, spelled out, in a list; codes with words before them
    "card number is §4539 1488 0343 6468§, expiry 03/28",
    "§four zero two four, five nine zero zero, two four five three§ is on the visa",
    "the cvv on it is §610§, ask if it fails",
    # what ties a password by a closed list of words
    "the admin password was probably §Lantern.Brass.7§, try it",
    "Brass_Lantern8 was old, we changed the root password to §Brass-Lantern-8§.",
    # arguments of commands
    "fly secrets set SESSION=§brass-lantern§",
    "drush upwd admin '§brass lantern§'",
    # codes of cards without their numbers
    "the CVV is §481§, the date is on the other photo",
    "security code on the front: §5127§",
)
NOT_NEAR = (
    "The password form uses bcrypt-pbkdf, SHA-256 and two-factor login via auth0.",
    "passphrase prompt hangs under tmux, pinentry-curses can't find the tty",
    "the exit code was 4471, error code 80070005, zip code 90210",
    "only the last four digits 4242 of the card are shown",
    "log in with client.connect() or self.session.user, then open base-files and update-passwd",
    "password=settings.database.password, password=config.value",
)
