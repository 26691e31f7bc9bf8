"""The rules, in three tables, and the words by which names and values are told apart. What stands below a head (of a
table, an INSERT, a manifest) is found by the same WORDS, in `below.py`."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

NEVER = 9  # more than any value reaches


class Key(NamedTuple):
    """A secret with a shape: `mark` (RE2 and re) begins it and `body` follows; with `back` it is inside."""

    rule: str
    mark: str
    body: str  # bounded wherever it can fail after a long run, so that hostile input stays linear
    mixed: bool = False  # the mark proves little: the body must look random, too
    back: str = ""  # what stands before the mark


class Place(NamedTuple):
    """A secret is group v of `find`, which matches at `mark`; an empty v: the value that begins there."""

    rule: str
    need: int  # the least `oddness` of the value; -1 for base64 of user:password
    mark: str
    find: str
    line: str = ""  # what has to stand before it on the same line
    lead: str = ""  # with it, `find` begins before the mark, at one of these


class Word(NamedTuple):
    """A name that tells. The numbers are the least `oddness` of a value, by how it is tied to the name."""

    rule: str
    words: str
    quoted: int  # name = "value"
    tight: int  # NAME=value, --name value, <name>value</name>
    bare: int  # name: value
    loose: int  # the name is value
    short: int  # the least length of a value


# fmt: off
# Rule, prefix, rule, prefix ...: keys that go on with 16 or more of A-Z a-z 0-9 _ -, and in _BASE64 of + / = as well.
_PREFIXED = r"""
    honeycomb hca[a-z]{2}_  anthropic sk-ant-  openrouter sk-or-  openai (?:(?:sk|sess)-|ek_[0-9a-f]{8})
    google (?:AIza|GOCSPX-|1//0|4/0A|AQ\.Ab|ya29\.)
    github (?:gh[pousr]_|github_pat_)  gitlab (?:gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-|GR1348941)
    npm npm_[A-Za-z0-9]{16}  pypi pypi-[\w-]{20}  huggingface (?:hf|api_org)_  digitalocean do[por]_v1_
    mailgun key-[0-9a-f]{8}  sendgrid SG\.[\w-]{16,32}\.
    databricks (?:dapi|dose|dkea)[0-9a-f]{8}  linear lin_[a-z]+_  vault hv[sbr]\.
    doppler dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]+\.)?  notion (?:secret|ntn)_[A-Za-z0-9]{20}  figma fig[dour]_
    shopify shp(?:at|ca|pa|ss|ua|tka)_  square sq0[a-z]{3}-  planetscale pscale_[a-z_]{1,20}_  postman PMA[KT]-
    xai xai-  groq gsk_  newrelic NR(?:AK|II|IQ|RA|JS|SP)-  replicate r8_[A-Za-z0-9]{12}
    perplexity pplx-[A-Za-z0-9]{16}  supabase sb(?:p|_secret)_  netlify nf[pcoub]_[A-Za-z0-9]{12}
    vercel (?:vc[paikrb]_|vercel_blob_rw_)  docker dckr_[po]at_
    ruby-gems rubygems_  circleci CCI(?:PAT|PRJ)_  buildkite bk(?:ua|ct|at|pt)_  pulumi pul-[0-9a-f]{20}  heroku HRKU-
    tavily tvly-  tailscale tskey-[a-z]{2,12}-  brevo x(?:key|smtp)sib-  resend re_[A-Za-z0-9]{8}_
    langsmith ls(?:v2_[a-z]{2}_|__)  pinecone pc(?:sk|l)_  nvidia nvapi-
    cloudflare (?:cf(?:ut|at|k|ast)_|v1\.0-[0-9a-f]{24}-)  airtable pat[A-Za-z0-9]{14}\.[0-9a-f]{20}
    dropbox sl\.(?:u\.)?[\w-]{36}  cerebras csk-  together tgp_v1_  fireworks fw_[A-Za-z0-9]{4}
    elevenlabs sk_[0-9a-f]{8}  firecrawl fc-[0-9a-f]{8}  jina jina_  voyage pa-[\w-]{20}  e2b e2b_[0-9a-f]{16}
    wandb wandb_v1_  render rnd_[A-Za-z0-9]{4}  posthog ph[xs]_  neon n(?:api|pg)_  1password (?:ops_ey|A3-[0-9A-Z]{6}-)
    sonar sq[upa]_[0-9a-f]{16}  sourcegraph sg[pd]_[0-9a-f]{16}  contentful CFPAT-
    dynatrace dt0[a-z][0-9]{2}\.[0-9A-Z]{24}\.  launchdarkly (?:sdk|mob|api)-[0-9a-f]{8}-  alibaba LTAI[A-Za-z0-9]{4}
    tencent AKID[A-Za-z0-9]{4}  facebook EAA[A-Za-z0-9][\w-]{36}  age AGE-SECRET-KEY-(?:PQ-)?1
    wallet [xyz]prv[0-9A-Za-z]{60}  plaid access-(?:sandbox|development|production)-
    paypal access_token\$[a-z]+\$[0-9a-z]{16}\$  jfrog AKCp[A-Za-z0-9]{40}  typeform tfp_[\w-]{16}
    easypost EZ[AT]K[A-Za-z0-9]{30}  yandex (?:AQVN|y[0-3]_)[\w-]{20}  prefect pn[ub]_[A-Za-z0-9]{12}
    shippo shippo_(?:live|test)_  frameio fio-u-  readme rdme_  infracost ico-[A-Za-z0-9]{16}
    crates-io cio[A-Za-z0-9]{16}  nuget oy2[a-z0-9]{27}  apify apify_api_  browserbase bb_live_  cursor key_[0-9a-f]{32}
    daytona dtn_[0-9a-f]{16}  inngest signkey-[a-z]+-[0-9a-f]{16}  hubspot pat-[a-z]{2}[0-9]-  razorpay rzp_[lt]
    runpod rpa_[A-Z0-9]{12}  onesignal os_v2_(?:app|org)_  zapier zpka_  trigger tr_(?:dev|prod|pat|stg)_  retool retool_
    unkey unkey_  mailersend mlsn\.  modal (?:ak|as)-[A-Za-z0-9]{6}  brave BSA[A-Za-z0-9_-]{11}  octopus API-[0-9A-Z]{10}
    pterodactyl ptl[ac]_  adafruit aio_[A-Za-z0-9]{12}  docker SWMTKN-1-  firebase AAAA[\w-]{7}:APA91b  linkedin WPL_AP[01]\.
    twitch oauth:[a-z0-9]{14}  wakatime waka_[0-9a-f]{8}  copilot cptok-  clojars CLOJARS_  nylas nyk_v0_  duffel duffel_
    akamai akab-[a-z0-9]{8}  mongodb mdb_sa_sk_  svix testsk_  bearer secret-token:
    salesforce 00D[A-Za-z0-9]{12,15}![\w.]{20}  coingecko CG-[A-Za-z0-9]{8}  context7 ctx7sk-  amazon amzn\.mws\.[0-9a-f]{8}-
    wallet sEd[1-9A-HJ-NP-Za-km-z]{12}  token (?:sk|rk|tok|token|secret|apikey|api_key)_[A-Za-z0-9]{4}
    intercom dG9rO[A-Za-z0-9]{20}  github v1\.[0-9a-f]{24}
    expo expo_  flutterwave FLWSECK-[0-9a-f]{16}  lob live_[0-9a-f]{19}
"""
_BASE64 = r"""
    stripe (?:[sr]k_(?:live|test|prod)|whsec)_  atlassian AT(?:ATT|CTT|BB|TA|SP)[A-Za-z0-9]{4}  sentry sntry[su]_
    grafana gl(?:sa|c)_  fly (?:FlyV1\x20)?f(?:m[12][ar]?|o1)_  aws (?:ABSK|FwoGZXIvYXdz|IQoJb3JpZ2lu)[\w+/%]{40}
    slack (?:xox[abcdeoprs][.-]|xapp-)  confluent cflt[\w+/]{4}
"""
_LINES = (  # of base64; between two of them a gutter, a line break in any form, a note that some were left out
    r"(?:(?:(?:[\s\"'+>|#*,;()→0-9]|\\+[nrt]){0,40}|[^\"]{1,60}?(?<![A-Za-z0-9+/])(?=[A-Za-z0-9+/]{40}))"
    r"[A-Za-z0-9+/=]{16,})+"
    r"(?:(?:\s|\\+[nr]){1,8}(?=[A-Za-z]*(?:[0-9+/=]|\Z))[A-Za-z0-9+/]{1,15}={0,2})?"
)
_PEM = (  # up to the END line; without one, the lines of base64 that follow
    r"(?: BLOCK)? ?-----?(?:(?:(?!----[- ]?BEGIN)[\s\S]){16,16000}?----[- ]?END [A-Za-z0-9 ]{0,40}-{0,5}"
    r"|(?:(?:[ \t\r]*+(?:\n|\\++[nr]))++[ \t>|]*+[\w-]{1,30}+: [^\n\\]{0,200}+){0,6}+" + _LINES + ")"
)  # each of the headers begins a line
KEYS = (
    *(Key(rule, mark, r"[\w-]{16,400}", True) for rule, mark in zip(*[iter(_PREFIXED.split())] * 2, strict=True)),
    *(Key(rule, mark, r"[\w+/=%,.-]{16,400}", True) for rule, mark in zip(*[iter(_BASE64.split())] * 2, strict=True)),
    Key("private-key", r"----[- ]?BEGIN (?:[A-Z0-9 ]{0,30}PRIVATE KEY|OpenVPN Static key V1)", _PEM),
    Key("private-key", r"----[- ]?END [A-Z0-9 ]{0,30}PRIVATE KEY", r"(?: BLOCK)? ?-{1,5}"),
    Key("private-key", r"(?:b3BlbnNzaC1rZXktdjE|MII[A-Za-z0-9+/]{3}IBA(?:DANBgkqhkiG9w0BAQEFAASC|AKCA))", _LINES),
    Key("private-key", r"LS0tLS1CRUdJTiB(?:QUklW|SU0E|FQy|PUEVO|FTkNS|EU0E)", _LINES),  # base64 of BEGIN
    Key("private-key", r"Private-Lines: [0-9]+", r"(?:\s|\\[nr])+(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])*)+"),
    Key("private-key", r"(?:/u3\+7QAAAA|zs7OzgAAAA)", r"[\w+/=]{40,}"),  # a Java key store
    Key("wallet", r"\b(?:nsec1|sEd)[02-9A-Za-z]{16}", r"[0-9A-Za-z]{10,60}"),
    Key("wallet", r"\b6P[RYnyfgr][1-9A-HJ-NP-Za-km-z]{30}", r"[1-9A-HJ-NP-Za-km-z]{25}(?!\w)"),
    Key("wallet", r"\bS[A-D][A-Z2-7]{40}", r"[A-Z2-7]{14}(?!\w)", True),
    Key("wallet", r"\b[5KL][1-9A-HJ-NP-Za-km-z]{40}", r"[1-9A-HJ-NP-Za-km-z]{10,11}(?!\w)", True),
    Key("tor", r"(?:ED25519-V3:|RSA1024:|descriptor:x25519:)", r"[\w+/=]{40,}"),
    Key("aws", r"A(?:KIA|SIA|BIA|CCA)", r"[A-Z0-9]{16}(?![A-Z0-9])(?:[\s\"',;:|=/]{1,12}[\w/+]{40}(?![\w/+=]))?"),
    Key("jwt", r"eyJ[\w-]{6}", r"[\w-]{2,1500}\.(?:[\s\\\"'+]{1,40}(?=eyJ))?[\w-]{6,}"
        r"(?:\.(?:[\s\\\"'+]{1,40}(?=[\w-]{24}))?[\w-]*){0,3}"),
    Key("crypt", r"\$(?:2[abxy]|[156y]|apr1|argon2(?:id?|d))\$", r"[\w./$=,+-]{26,300}", True),
    Key("azure", r"[0-9]Q~", r"[\w.~-]{30,40}", back=r"[\w.~-]{3}"),
    Key("azure", r"(?:AZDO|\+AMC|\+ASt|AzCa|APIM|AzFu|AzSe|ACDb)", r"[\w+/]{4,8}={0,2}", True, r"[\w+/]{32,76}"),
    Key("token", r"_(?:live|prod|pat|oat|sk|tkn)_[\w-]{8}", r"[\w-]{10,400}", True,
        r"(?!p[bk]_)[a-z][a-z0-9_]{1,14}"),
    Key("stripe", r"_secret_", r"[A-Za-z0-9]{16,}", back=r"(?:pi|seti|cs|src)_[A-Za-z0-9]{14,34}"),
    Key("mailgun", r"-[0-9a-f]{8}-", r"[0-9a-f]{8}(?![0-9A-Za-z-])", back=r"[0-9a-f]{32}"),
    Key("mailchimp", r"-us[0-9]", r"[0-9]?(?![0-9A-Za-z])", back=r"[0-9a-f]{32}"),
    Key("newrelic", r"NRAL", r"(?!\w)", back=r"[0-9a-fF]{32,40}"),
    Key("twilio", r"(?:AC|SK)[0-9a-f]{8}", r"[0-9a-f]{24}(?!\w)(?:[\s\"',;:|=/]{1,12}[0-9a-f]{32}(?!\w))?"),
    Key("asana", r"\b[0-9]/[0-9]{13,17}[/:][0-9]{6}", r"[0-9]*:?[0-9a-f]{20,32}(?!\w)"),
    Key("telegram", r"[0-9]:AA[\w-]{4}", r"[\w-]{28,}", back=r"(?:bot)?[0-9]{7,11}"),
    Key("discord", r"\.[\w-]{6}\.[\w-]{12}", r"[\w-]{15,}", True, r"[MNO][\w-]{22,30}"),
    Key("recovery-code", r"\b[0-9]{6}-[0-9]{6}-[0-9]{6}-", r"(?:[0-9]{6}-){4}[0-9]{6}(?![\w-])"),
    Key("terraform", r"\.atlasv1\.", r"[\w=-]{50,}", back=r"[A-Za-z0-9]{14}"),
)

_TO = r"\\{0,3}[\"'`]?\]?\s{0,4}(?::|=>|=|,(?=\s{0,4}\\?[\"'`]))\s{0,4}"  # between the name of a header and its value
_PAIR = _TO + r"\\{0,3}[\"'`]?[\w.%-]{1,64}="  # the same, up to the value of the first cookie
_JAR = r"(?P<v>(?=[^\n\"'`\\$<{]{0,300}?(?:\d|[a-z][A-Z]))[^\n\"'`\\]{12,4000})"  # cookies that carry something
_HOST = r"(?:\[[0-9a-fA-F:]{2,40}\]|[\w.${}%-]{1,253})(?::[\w${}]{1,30})?(?:[/?#\s\"'`,;()<>\\\]|]|$)"
_STDIN = (  # what reads a secret from its standard input
    r"(?:--(?:password|passphrase|api-key|token|secret|key|stdin|data-file|value)[\w-]*[ =]?-?\b|with-token|sudo\b[^|\n]{0,30}? -\w*S|chpasswd"
    r"|passwd\b|kinit|cryptsetup|luks|smbpasswd|pdbedit|vncpasswd|passphrase|secrets? (?:put|set|create|versions|add)|login|unlock|wpa_|\bsu -|\bgpg\b|\bage\b"
    r"|keytool|htpasswd|keepass|hdiutil|fdesetup|ssh-add|pass insert|gopass|env add|keystore add|p4\b|su \w|secret:|mosquitto_passwd|openssl|docker secret|podman secret|variable set|auth |zfs|veracrypt|borg|restic|ansible-vault|sops)"
)
_FILE = r"[^\s|;&]{0,80}?(?:passw|passphrase|/pass|_pass|\.pass|secret|_token|\.token|/token|credential|htpasswd|netrc|\.pwd?\b|vault_pw)"
_WITHIN = r"(?i:pass(?:word|phrase|wd)?|pw|secret|key|token)[\w-]{0,20}[ =][\"']?(?:<\(\s?)?(?:echo|printf)"  # what a command prints
_LINES_IN = r"(?(q)[^\"'\n]{3,200}?|[^\s\"'`|\\)]{3,200})"
_WORD = r"(?(q)[^\"'\n\\]{3,200}|[^\s\"'`|\\]{3,200})"  # up to the quote that group q opened, or white space
UNSET = r"(?:\$\{\w{1,80}:?[-=]){1,8}"  # of ${NAME:-value}, which is its value where the name is not set
_URL, _USER = r":\\?/\\?/", r"(?<![\w.%+-])[\w.%+-]{1,64}:"
_LOGIN = (  # and a user; the password follows
    r"(?i:cred(?:ential)?s|log-?in|log in|account|zugangsdaten|identifiants|user/pass(?:word)?)"
    r"(?i: for [\w-]{1,30}| details)?(?i: ?:| is:?| are:?| with:?| as:?| ist| sind) {1,4}"
    r"[\"'`]?[\w.@+-]{1,40}[\"'`]?(?: ?/ ?|:| with | mit | and | und )[\"'`]?"
)
_TYPED = r"(?i:passw\w{1,3}|pwd)[\"'\]]{1,4}\)\.(?:send_keys|type|fill)\("  # into a field
_CODE_OF = r"(?i:(?:app|otp|[2m]fa|setup|recovery|backup)[ _-](?:password|seed|secret|key|code))"
_CODES = r"(?:\w{4,6}(?:-\w{4,6}){1,3}|\d{4} \d{4}|(?=[A-Za-z]{0,9}\d)[0-9A-Za-z]{6,12})(?![\w.-])"  # of a list
_ITEM = r"(?:[\s,;|*•\"'\[-]|\\[nr]|\d{1,2}[.)]\s){1,12}"
_ARGS = r"\s(?:[^\n|;]{0,160}?\s)?"
_LAST = r"(?P<v>[^\s\"'`\\|/]{4,60})"
_NO_OWNER = r"\A(?!.*\b(?:docker|podman|nerdctl|chown|install|useradd|rsync|compose|run)\b)"  # a user and a group
_P = r"-[pP](?:\s|=|(?=[\"']))"
_COMMANDS = {  # and what stands between them and a password
    r"(?:redis|valkey)-cli": _ARGS + "(?:-a|--pass)",
    r"(?:sqlcmd|bcp|osql|isql|zip|unzip|mosquitto_pub|mosquitto_sub|ipmitool|ncftp\w*)": _ARGS + "-P",
    r"(?:mongo(?:sh|dump|restore|import|export|stat)?|cqlsh|clickhouse-client|influx|user(?:add|mod)|docker login|podman login|registry login"
    r"|oc login|cf login|ibmcloud login|nerdctl login|buildah login|oras login|az login|argocd login|crane (?:auth )?login|twine upload|rdesktop"
    r"|evil-winrm|crackmapexec|nxc|netexec|psexec|hydra|medusa|conan user|conan remote|cadaver|siege|az \w+ (?:server|vm|db|user|admin)"
    r"|nuget|dotnet nuget|jfrog|mysqladmin|mcrcon|impala-shell|beeline|snowsql|vsql|curlftpfs|winexe|neo4j|cypher-shell|arangosh|couchbase-cli"
    r"|sshpass)": rf"{_ARGS}{_P}\s?|(?<=sshpass)\s-p",
    r"(?:ldap(?:search|add|modify|passwd|delete|whoami|compare)|add-(?:generic|internet)-password|kadmin)": _ARGS + "-w",
    r"(?:plink|pscp|psftp|kadmin)": _ARGS + "-pw",
    r"(?:create|unlock|set)-keychain": _ARGS + "-p",
    r"openssl (?:enc|rsa|pkcs12)": _ARGS + "-k",
    r"openssl \w[\w-]*": _ARGS + r"-K\s(?=[0-9a-fA-F]{32})",
    r"(?:irssi|weechat)": _ARGS + r"-w\s",
    r"ftp> user": r" \S{1,60}\s",
    r"isql \w+ \w+": r"\s(?=[^-\s])",
    r"\.logon": r" \S{1,60},",
    r"openssl passwd": _ARGS + r"(?:-\w+ )+",
    r"ssh-keygen": _ARGS + "-[NP]",
    r"(?:secrets? (?:set|create|add|put)|put-parameter|create-secret|put-secret-value|update-secret)": _ARGS
        + "(?:-b|--body|--value|--secret-string|--data)",
    r"(?:vault operator unseal|rclone obscure)": r"\s(?=[^-\s])",
    r"(?:7za?|7zr|rar|unrar) [a-z]": _ARGS + r"-h?p(?=\S)",
    r"(?:htpasswd|mosquitto_passwd)": r" (?:-[a-zA-Z]{1,5} ){0,3}-[a-zA-Z]{0,4}b[a-zA-Z]{0,4} (?:-[a-zA-Z]{1,3} )?(?:\S{1,80} )?\S{1,80}\s(?=\S+(?:\s*$|\s*[\n|;&]))",
    r"net use": r" \S{1,80} \\\S{1,80}(?: /user:\S{1,80})?\s",
    r"net user": r" [^\s/]\S{0,80}\s(?=[^/\s*])",
    r"(?:cmdkey|runas|xfreerdp|schtasks|wmic|mstsc)": r"\s(?:[^\n|;]{0,160}?\s)?/(?:pass(?:word)?|p|rp|pw)[:= ]",
    r"encrypt_string": r"(?=\s[\"'])",
    r"snmp-server community": r"\s",
    r"snmp(?:walk|get|set)": _ARGS + "-[cAX]",
    r"rabbitmqctl (?:add_user|change_password)": r" \S{1,80}\s",
    r"(?:ejabberdctl|prosodyctl) (?:register|change_password)": r" \S{1,80} \S{1,80}\s",
    r"samba-tool user (?:create|add)": r" \S{1,80}\s(?=[^-])",
    r"(?:walletpassphrase|encryptwallet|importprivkey|set-initial-password|mkpasswd(?: -m \S{1,20})?|user_pw|owner_pw|input_pw|reset-admin-password)": r"\s(?=[^-\s])",
    r"(?:iwconfig \w{1,12} key)": r"\s(?:s:)?",
    r"qpdf --encrypt": r"\s",
    r"mysqladmin": _ARGS + r"password\s",
    r"rclone config create": _ARGS + r"(?:pass|key|token|\w*secret\w*)\s",
    r"(?:doveadm pw|caddy hash-password)": _ARGS + "(?:-p|--plaintext)",
    r"rasdial": r" (?:\"[^\"\n]{1,60}\"|\S{1,60}) \S{1,60}\s(?=[^/])",
    r"pulumi config set": _ARGS + r"--secret \S{1,60}\s",
    r"(?:etcdctl|consul kv) put": r" \S*(?:passw|secret|token|key)\S*\s",
    r"(?:crypto isakmp|radius-server|tacacs-server) key": r" (?:[067] )?",
    r"drush": r" (?:user[:-]password|upwd) \S{1,40}\s",
    r"security (?:import|set-key-partition-list)": _ARGS + "-[Pk]",
    r"(?:electrum|racadm|rabbitmqadmin|supervisorctl|steghide|veracrypt|ncftp\w*|add-user\.sh)": _ARGS + "-[pWP]",
    r"ldappasswd": _ARGS + "-[sa]",
    r"signtool": _ARGS + "/p",
    r"(?:NickServ|nickserv) (?i:register)": r"\s",
    r"(?:authentication-key|chap password|plain-text-password-value|pap password)": r"(?: [0-9])?\s",
    r"(?:wpa_passphrase|-setairportnetwork)": r"(?: en\d)? (?:\"[^\"\n]{1,40}\"|'[^'\n]{1,40}'|\S{1,40})\s",
    r"(?:nmcli|wpa_cli|iwctl|netsh wlan|networksetup)": _ARGS + r"(?:password|psk|passphrase|wep-key\d?|wifi-sec\.psk|key|keyMaterial)(?: \d(?= ))?",
    r"mc (?:alias set|config host add)": r" \S{1,60} \S{1,200} \S{1,80}\s",
    r"dscl": _ARGS + r"-passwd \S{1,80}\s(?:\S{1,80}\s(?=\S))?",
    r"(?:sysadminctl|dsconfigad)": _ARGS + r"-(?:newPassword|password|adminPassword)",
    r"http-basic\.": r"\S{1,60} \S{1,80}\s",
    r"config pypi-token\.": r"\S{1,40}\s",
    r"user-secrets set": r" (?:\"[^\"\n]{1,80}\"|\S{1,80})\s",
    r"bw (?:login|unlock)": r"(?<=login) \S{1,80}\s(?=[^-\s])|(?<=unlock)\s(?=[^-\s])",
    r"conan remote login": r" \S{1,80} \S{1,80}\s(?:-p )?",
    r"db2 connect to": r" \S{1,80} user \S{1,80} using\s",
    r"(?:docker|podman) secret create": r" \S{1,60}\s(?=[\"'])",
    r"(?:smbclient|rpcclient)": r" (?:-U \S{1,40} )?[\"']?[/\\]{2}\S{1,120} (?=[^-\s])",
    r"lftp": r"\s(?:[^\n|]{0,160}?\s)?" + r"-u [\w.@-]{1,60},",
    r"(?:requirepass|masterauth|rootpw|bindpw)": r"\s",
    r"oathtool": _ARGS + r"(?:-b|--base32)",
    r"LOGIN": r" [\w.+-]{1,60}(?:@[\w.-]{1,60})?\s(?=\S{3,80}\s*(?:\n|\Z))",
    r"(?i:nickserv|acl setuser)": r" (?:(?i:identify) (?:\S{1,40} (?=\S))?|\S{1,60}(?: on)? >)",
}
_ASKED = r"(?i)(?:assw|ass ?phrase|pin\b)[^\n]*\n?[^\n]*\Z"  # a prompt, before what is sent
AT = r"[^\s/\"'`{(\[<]@(?:[A-Za-z_\[${%]|[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9])"

_PRINTS = (  # a command whose output is a secret
    r"(?:get secrets? |secret get |vault (?:kv get|read) -field|get-secret-value|secrets versions access|op read |pass show |bw get password|secret-tool lookup|find-generic-password|config:get "
    r"|keyvault secret show|output -raw |auth token\b|print-access-token|get-access-token|whoami -t|pwgen |openssl rand|wg genkey|printenv \w*(?:PASS|TOKEN|SECRET|KEY)|echo [\"']?\$\{?\w*(?:PASS|TOKEN|SECRET|KEY)"
    r"|cat \S*(?:pass|secret|token))"
)

PLACES = (
    Place("password", 2, _PRINTS, r"[^\n]{1,240}\n(?P<v>[^\s$#>%:={}()<>;,'\"]{8,200})%?(?=[ \t\r]*(?:\n|\Z))"),
    Place("password", 1, r"stats auth ", r"\w+ auth [\w.-]{1,40}:(?P<v>\S{3,100})"),
    Place("password", 1, r"insecure-password ", r"[\w-]+ (?P<v>\S{3,100})"),
    Place("password", 1, r"type=\\?[\"']password\\?[\"']", r"[^<>\n]{1,200}?\bvalue=\\?[\"'](?P<v>[^\"'<>\n\\]{3,100})"),
    Place("password", 3, r"invalid user \S{6}", r"\w+ \w+ (?P<v>\S{6,80}) from"),
    Place("secret", 0, r"secret_id[\"' ]{0,2}[:=]", r"\w+[\"' ]{0,2}[:=]\W{0,3}(?P<v>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", r"(?i)role|vault"),
    Place("secret", 2, r"--from-literal[= ]", r"--from-literal[= ][\"']?[\w.-]{1,60}=(?P<v>)", r"secret"),
    Place("password", 1, r",pass(?:word)?=", r",\w+=(?P<v>[^\s,\"']{3,100})", r"\s-o\s"),
    Place("private-key", 3, r"[mMpPsSrR](?:eta[mM]ask|hantom|olflare|abby)\b",
          r"(?:(?!\btx|hash|transaction)[^\n]){1,80}?(?<![\w/])(?P<v>(?:0x)?[0-9a-fA-F]{64}(?!\w)|[1-9A-HJ-NP-Za-km-z]{86,88}(?!\w))"),
    Place("url-token", 3, AT, r":\\?/\\?/(?P<v>[\w.~%+=-]{16,200}(?::[^\s@/:\"'<>]{0,64})?)@", lead=_URL),
    Place("url-password", 1, AT, r":\\?/\\?/[^\s/?#@:\"'<>`\\]{0,64}:(?!\d{1,5}(?:[/?#]|$))(?P<u>" + UNSET + r")?"
          r"(?P<v>[^\s\"'<>`\\]{1,200}?)(?(u)\}|)@(?=" + _HOST + r")"
          r"(?![\w-]+[/#?][^\s\"'<>@=&]*@[\w-]+[.:])", lead=_URL),
    Place("url-password", 1, AT, r"[\w.%+-]{1,64}:(?P<v>[^\s\"'<>`]{1,100})@(?:tcp|udp|unix)\(", lead=_USER),
    Place("url-password", 2, AT, r"(?<![\w/.-])[\w.%+-]{1,64}:(?P<v>[^\s\"'<>`/\\:@][^\s\"'<>`/]{4,100})"
          r"@(?:localhost|\d+\.\d+\.\d+\.\d+|[\w-]+\.[\w.-]+):\d", lead=_USER),
    Place("authorization", 2, r"(?i:authorization)[\"'\\`\]\s]{0,8}[:=,]", r"(?<![a-z])\w+" + _TO + "(?P<v>)"),
    Place("authorization", 3, r"(?i:bearer)(?:\s|%20)", r"\w+(?:\s{1,4}|%20)(?P<v>)"),
    Place("authorization", -1, r"(?i:basic)[ %][A-Za-z0-9+/]{6}", r"\w+(?: |%20)(?P<v>[A-Za-z0-9+/]{6,999}={0,2})"),
    Place("cookie", 3, r"(?i:set-cookie)", r"[\w-]{1,30}" + _PAIR + r"(?P<v>[^;\s\"'`\\]{6,4000})"),
    Place("cookie", 0, r"(?i:cookie)[\"'`\\\]]{0,4}\s*[:=,]", r"(?<!-)\w+" + _PAIR + _JAR),
    Place("cookie", 0, r"-(?:b|-cookie)[ =]", r"[-\w]+[ =]+[\"']?[\w.%-]{1,64}=" + _JAR, "curl"),
    Place("cookie", 3, r"(?:PHPSESSID|JSESSIONID|connect\.sid)=", r"[\w.]+=(?P<v>[^;\s\"'`\\]{8,400})"),
    Place("password", 1, r"\s-(?:[uUa]|-(?:proxy-)?user)[ =\"'\w]", r"\s(?:-[uUa]|--[a-z-]+)[ =]{0,3}(?P<q>\\?[\"'])?"
          r"[^\s:\"'\\]{1,64}:(?P<v>" + _WORD + r")", r"\b(?:curl|https?|wget|xh)\b"),
    Place("password", 2, r"\s-[uU][ =][\"']?[\w.@-]+:", r"\s-\w[ =][\"']?(?P<u>[\w.@-]{1,40}):(?!(?P=u)\b|\d+\b)" + _LAST, _NO_OWNER),
    Place("password", 1, r"\s--?(?:auth|user|creds|credentials)[ =][\"']?[\w.@-]+:", r"\s-[\w-]+[ =][\"']?(?P<u>[\w.@-]{1,40}):(?!(?P=u)\b|\d+\b)" + _LAST, _NO_OWNER),
    Place("password", 2, r"(?i:admin|root|administrator|login|user(?:name)?:?) (?:[\w.@+-]{2,40} )?/ [^\s/]{6}",
          r"\w+:? (?:[\w.@+-]{2,40} )?/ (?P<v>(?=\S{0,40}[!#$%&*?+^~@])[^\s\"'`/|()<>,;]{6,60})(?=[\s\"'`),;.]|\Z)"),
    Place("password", 2, r"(?:#|//|--) (?i:pw|pass(?:word|phrase|wd)?|pwd)[: ]", r"\W+\w+:? ?(?P<v>[^\s\"'`()<>=]{6,60})(?=[ \t]*(?:\n|\Z))"),
    Place("secret", 1, r"(?:secrets? (?:set|import|put)|env:set|secret:set) [^\n=]{0,60}=", r"[\w:]+(?: set| import| put)? (?:-\S+ |[a-z][\w-]* ){0,4}[A-Z][A-Z0-9_]*=(?P<v>)"),
    Place("password", 1, r"-AsPlainText (?:-Force )?[\"']", r"-\w+ (?:-\w+ )?(?P<v>(?=[\"']))"),
    Place("password", 1, r"(?i:enter|unlock|repeat|verify|type)[^\n:]{0,20} (?i:pass\w{4,6}|pin)\b[^\n:]{0,80}:[ \t]", r"[^\n:]+:[ \t]+(?P<v>[^\s\"'`()<>]{5,60})[ \t]*(?=\n|\Z)"),
    Place("secret", 0, r"(?i:gift ?card|wallet code|voucher|gutschein|carte cadeau|tarjeta regalo)",
          r"[^\n]{4,70}?(?<![\w-])(?P<v>(?=[A-Z0-9-]{0,40}\d)(?=[0-9-]{0,40}[A-Z])[A-Z0-9]{3,7}(?:-[A-Z0-9]{3,7}){2,4})(?![\w-])"),
    Place("password", 1, r"\s-p[^\s=-]", r"\s-p(?P<v>)", r"\b(?:mysql|mariadb)"),
    Place("password", 1, r"\b(?:" + "|".join(_COMMANDS) + r")",
          rf"(?:{'|'.join(f'{name}(?:{tail})' for name, tail in _COMMANDS.items())})(?:=|\s*)(?P<v>)(?=[^\s/|<>&;-])"),
    Place("secret", 3, r"(?:vault login |--with-token <<<)", r"(?:vault login|--with-token <<<)\s{1,4}(?P<v>)(?=[^-])"),
    Place("password", 1, r"(?:sqlplus |oracle:thin:)", r"(?:sqlplus |\w+:\w+:)\w{1,30}/(?P<v>[^\s@\"'/]{3,60}|\"[^\"\n]{3,60}\")@"),
    Place("password", 1, r"-U [\"']?[\w.\\]+%", r"-U [\"']?[\w.\\-]{1,64}%(?P<v>)", r"(?:^|\s)(?:smb|rpc|net\b)"),
    Place("password", 1, r"[\"']-u[\"'], ?[\"']",
          r"\W-u\W{3,4}[^\s:\"']{1,64}:(?P<v>[^\"'\n]{3,200})", r"\b(?:curl|https?|wget)\b"),
    Place("password", 1, r"[\"']-p[^\s=\"'-]", r"\W-p(?P<v>[^\"'\n]{3,200})[\"']", r"\b(?:mysql|mariadb)"),
    Place("password", 1, r"\b(?:echo|printf|print|Write-Output|yes)[ \t]", r"\w[\w-]*\s+(?:-\w+\s+)*(?:[\"']%s(?:\\n)?[\"']\s+)?"
          r"(?P<q>\\?[\"'])?(?:[\w.-]{1,40}:(?=[^|\n]{1,80}chpasswd))?(?P<v>" + _LINES_IN + r")\\?[\"']?(?:\s+[\"']?(?P=v)[\"']?)?\s*"
          r"(?:(?:[;&]+ ?(?:echo|printf)[^|\n]{1,60})?\)?\s*\|[^|\n]{0,90}?" + _STDIN + r"|>>?\s*[\"']?" + _FILE + ")"),
    Place("password", 1, _WITHIN, _WITHIN + r"[ \t]+(?:-\w+\s+)*(?:[\"']%s(?:\\n)?[\"']\s+)?(?P<q>\\?[\"'])?(?:[\w.-]{1,40}\\n)?(?P<v>" + _WORD + r")"),
    Place("password", 1, r"<<<", r"<<<\s*[\"']?(?:[\w.-]{1,40}:(?=\S))?(?P<v>)(?=[^$\s])", f"{_STDIN}|(?:tee|>)\\s*[\"']?{_FILE}"),
    Place("password", 1, r"\bsend(?:_user|line)?[ (]", r"\w+[ (]+(?:-- )?[\"'](?P<v>[^\"'\n\\$]{3,80})(?:\\[rn])", _ASKED),
    Place("password", 1, r"(?i:connect|conn|impdp|expdp|sqlldr|rman|target) \w{1,30}/", r"\w+ \w{1,30}/(?P<v>[^\s@\"'/]{3,60})@\w"),
    Place("password", 1, r"(?:-pass(?:in|out)?\s[\"']?pass:|ConvertTo-SecureString\s|IDENTIFIED BY\s|identified by\s)",
          r"(?:-pass\w*\s[\"']?pass:|\w+-\w+\s+(?:-String\s+)?(?=[\"'])|\w+ \w+\s+(?=\\?')"
          r"|IDENTIFIED BY\s+(?=\\?\"))(?P<v>)"),
    Place("password", 1, r"\bAUTH ", r"AUTH (?:[\w.-]{1,40}\s)?(?P<v>[^\s\"'{(]{3,100})(?=[\"']?(?:\r?\n|\Z))", r"(?:^|[>#\"'$:]) ?\Z"),
    Place("password", 1, r"(?:enable|username \w{1,40}(?: privilege [0-9]+)?|neighbor [0-9.]+) (?:secret|password) ",
          r"[^\n]*? (?:secret|password) (?:[057-9] )?(?P<v>)(?=\S+[ \t]*(?:\r?\n|\Z))", r"(?:^|[#>])[ \t]*\Z"),
    Place("password", 1, r"(?:key-string|pre-shared-key|wpa-psk ascii|tacacs-server key|radius-server key|isakmp key|plaintext-password) ",
          r"[\w-]+(?: ascii| key)? (?:[067] )?(?P<v>)", r"(?:^|[#>])[ \t]*(?:(?:crypto|set)[^\n]{0,60} )?\Z"),
    Place("password", 1, r"[ \t]--?[a-zA-Z.-]*(?i:passphrase|password|passwd|pass|pwd?|secret)[ \t=]+[^\s$<-]",
          r"\s--?[a-zA-Z.-]*(?i:phrase|word|wd|pass|pw|secret)[ \t=]+(?P<v>)(?=[^\s$<|>&;-])", r"(?<!\band)(?<!\bor)(?<!\bthe)(?<!,)\Z"),
    Place("password", 1, r"[ \t]--?(?:[a-z]{1,8}-)?pin[ =][0-9]{4}", r"\s[a-z-]+[ =](?P<v>\d{4,12})\b"),
    Place("password", 1, r"[a-z][-:](?:password|passwd|passphrase)[ \t]", r"[\w:-]+[ \t]+(?P<v>)(?=(?:[\"'][^\"'\n]+[\"']|[^\s-]\S+)[ \t]*(?:[\n;&|]|\Z))",
          r"(?:^|[$#>;&|] |\./|\w+-cli |\w+ctl |admin )[\w./: -]{0,40}\Z"),
    Place("password", 1, r"(?:quote|\n)[ ]?PASS ", r"\w*\s?PASS (?P<v>)(?=\S+[ \t\r]*(?:\n|\Z))", r"(?:(?i:^|\n|> )USER [^\n]+| |^)\Z"),
    Place("password", 2, r"[ \t]-{1,2}(?:u|l|U|user|username|login) ?=?[\w.@\\]+ (?:-\w+ \w+ )?-(?:p|P|W|pw) ?[^\s=:/-]",
          r"\s-+\w+[ =]?\S+ (?:-\w+ \w+ )?-(?:pw|p|P|W) ?(?P<v>)(?!\d+\b|\S*\.\w{1,4}\b)"),
    Place("password", 1, r"[ \t]-[AX][ \t]", r"\s-[AX]\s+(?P<v>)(?=[^-\s$<])", r"\bsnmp"),
    Place("password", 1, r"(?i:password|identified[^'\n]{0,40} by)\s{1,4}(?:'|\$\w{0,12}\$|AS ')",
          r"[^'$\n]{0,60}\s+(?:as )?(?:\$(?P<t>\w*)\$(?P<u>)|')(?P<v>(?(u)[^\n]{3,100}?(?=\$\w{0,12}\$)|(?:[^'\n]|''){3,100}))",
          r"(?:(?i:identified)|\b(?:USER|user|ROLE|role|LOGIN|login|SET|set|GRANT|grant)\b)[^\n]*\Z"),
    Place("password", 1, r"\b(?:PSK|EAP|XAUTH)\s{1,4}[\"']", r"\w+\s+(?P<v>)", r":\s{0,4}\Z"),
    Place("password", 2, r"(?i:connect)\(", r"\w+\((?:\s*[\"'][^\"'\n]{0,80}[\"'],){2}\s*(?P<v>)(?=[\"'])", r"(?i)sql|maria|ora|db|ldap|ftp"),
    Place("password", 1, r"[\"'](?:jdbc|dbi|mysql|pgsql|odbc|sqlsrv|oci)[:=]",
          r"[\"'][^\"'\n]{1,200}[\"'],\s*[\"'][^\"'\n]{0,60}[\"'],\s*(?P<v>)(?=[\"'])"),
    Place("password", 1, r"(?:Credentials?|BasicAuth|basic_auth|PasswordAuthentication|Authenticator)\(",
          r"\w+\(\s*[\"'][^\"'\n]{0,80}[\"']\s*,\s*(?P<v>)(?=[\"'])"),
    Place("password", 2, r"getConnection\(", r"\w+\([^()\n]{1,120}?,\s?[\"'][^\"'\n]{0,60}[\"'],\s*(?P<v>)(?=[\"'])"),
    Place("secret", 3, r"(?:[sS]ecretKey|[pP]rivateKey|secret_key|private_key|from_?[sS]e(?:ed|cret))\(",
          r"\w+\((?:[\w.]+\()?\s*(?P<v>)(?=b?[\"'])"),
    Place("password", 1, r"machine\s", r"\w+\s+\S{1,80}\s+login\s+\S{1,80}\s+password\s+(?P<v>\S{3,200})"),
    Place("password", 1, r":(?:[56]4[0-9]{2}|\*):[\w.*-]{1,64}:[\w.@*-]{1,64}:[^\s:]",  # of a .pgpass file
          r":[\d*]+(?::[\w.@*-]{1,64}){2}:(?P<v>(?:\\[:\\]|[^\s\"'`\\]){3,200})", r"(?:^|[\s\"'`])[\w.*/-]{1,200}$"),
    Place("password", 1, r"WIFI:[A-Z]{1,2}:", r"WIFI:(?:[^\n]{0,200}?;)?P:(?P<v>(?:\\.|[^\n;\\]){3,200}?);"),
    Place("password", 1, r"(?i:pass|pw)[ \t]{0,4}[:=]",
          r"(?i)(?:login|user(?:name)?|e-?mail)[ \t]{0,4}[:=][ \t]{0,4}[^\s:=]{1,80}[\s,;/|]{1,8}"
          r"(?:pass|pw)[ \t]{0,4}[:=][ \t]{0,4}(?P<v>)", lead=r"(?i)\b(?:login|user|e-?mail)"),
    Place("password", 3, r"(?i:, pass )\S", r", \w+ (?P<v>)", r"(?i)\b(?:user|login)"),
    Place("password", 2, r"(?i:auth|login|authenticate|credential)\s*=?\s*\(\s*\\?[\"']",
          r"\w+\s{0,3}=?\s{0,3}\(\s{0,40}\\?[\"'][^\"'\n]{0,80}[\"']\s{0,4},\s{0,40}(?P<v>)(?=\\?[\"'])"),
    Place("password", 1, _TYPED, _TYPED + "(?P<v>)"),
    Place("password", 2, r"(?i:passw\w{1,3}|pass|pw)[)\]]? = [\[(]?[\"']",
          r"\w+[)\]]? = [\[(]?[\"'][^\"'\n]{0,60}[\"'], {0,2}(?P<v>)(?=[\"'])", r"\w, ?$"),
    Place("secret", 3,
          r"(?:jwt\.(?:sign|encode|verify|decode)|(?:hmac|AES)\.new|createHmac|Fernet|WiFi\.begin|[a-z]Password)\(",
          r"(?:(?:Fernet|\w+Password|hmac\.new|AES\.new)\(|[\w.]+\([^()\n]{1,80}?,)\s{0,8}(?P<v>)(?=b?[\"'])"),
    Place("url-query", 4, r"[?&](?:amp;)?(?i:key|k|sig|auth|jwt|code|app_?id|subscription-key|(?:x-(?:amz|goog)-)?signature)=",
          r"[?&](?:amp;)?[\w-]+=(?P<v>[^\s&\"'<>`#\\?]{12,2000})"),
    Place("seed-phrase", 0, r"(?i:mnemonic|(?:seed|recovery|backup|secret)[ _-]phrase)",
          r"\w{1,30}(?:[ -]\w{1,30})?[^\w\n]{0,12}(?:is\W{1,4})?(?P<v>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"),
    Place("private-key", 0, r"(?i:(?:secret|private) key)[^\n]{0,12}\n[\w+/]{20}", r"[^\n]+\n(?P<v>[\w+/]{40,1000}={0,2})(?=\s|\Z)"),
    Place("private-key", 0, r"wg gen(?:key|psk)", r"[^\n]*\n(?P<v>[\w+/]{43}=)"),
    Place("secret", 4, r"[\"'][),;\]]{1,4}\s{0,4}(?://|#|--)[ \t]",
          r"[\"'](?P<v>[\w+/=.-]{16,200})[\"'][),;\]]{1,4}\s{0,4}(?://|#|--)[^\n]{0,80}(?i:key|token|secret|passw|credential)", lead=r"[\"'](?=\w{16})"),
    Place("webhook", 3, r"(?:hooks\.(?:slack|zapier|slack-gov)|discord(?:app)?|(?:webhook|outlook)\.office)\.com/",
          r"[\w.-]+/(?:(?:api|hooks|v\d+)/){0,2}(?:\w{5,8}s|webhook(?:b2)?|catch)/(?P<v>[\w/@+-]{12,})"),
    Place("webhook", 4, r"(?:/bot/v2/hook|/webhook|/with/key|\.infura\.io/v3|\.alchemy\.com/v2)/[\w-]{20}",
          r"[/\w.]{1,24}?/(?P<v>[\w-]{20,400})"),
    Place("private-key", 3, r"(?i:wallet|signer|deployer|burner|ethers|from_?key|to_?account|secret_?key|import_?key|priv|pk|sk|solana|keypair)[\w.]{0,20}(?:[ :=(\"'\[,]{1,6}[a-z]{0,10}){1,3}(?:0x)?[0-9a-zA-HJ-NP-Z]{44}",
          r"[^\n]{2,60}?(?<![\w/])(?P<v>(?:0x)?[0-9a-fA-F]{64}(?!\w)|[1-9A-HJ-NP-Za-km-z]{86,88}(?!\w))"),
    Place("private-key", 0, r"<(?:D|P|Q|DP|DQ|InverseQ)>[\w+/]{16}", r"<\w+>(?P<v>[\w+/]{16,2000}={0,2})"),
    Place("secret", 0, r"(?i:aes|spend|view|encryption|master|hmac|decryption|eth|wallet|private)[ -](?i:key|pk)\b", r"[\w-]+ \w+(?: is)?[ :=\"']{1,4}(?P<v>(?:0x)?(?:[0-9a-fA-F]{64}|[0-9a-f]{32})\b|(?:[0-9a-f]{2} ){15,31}[0-9a-f]{2}\b)"),
    Place("recovery-code", 0, r"(?i:file ?vault|bit ?locker|licen[cs]e key|security key)", r"[^\n]{4,60}?(?<![\w-])(?P<v>[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){4,7})(?![\w-])"),
    Place("private-key", 0, r"Private-MAC: [0-9a-f]{8}", r"[\w-]+: (?P<v>[0-9a-f]{40,64})"),
    Place("private-key", 0, r"private_key_id\\?\"", r"\w+\\?\"\s?:\s?\\?\"(?P<v>[0-9a-f]{40})"),
    Place("password", 0, r"[0-9a-f]:::", r"(?P<v>[0-9a-f]{32}:[0-9a-f]{32}):::", lead=r"(?<![0-9a-f])[0-9a-f]{32}:"),
    Place("private-key", 4, r"(?:\"d\\?\"\s?:\s?\\?\"|accounts:\s?\[\s?[\"'])[\w+/-]{20}",
          r"(?:\"d\\?\"\s?:\s?\\?\"|accounts\W+)(?P<v>[\w+/=-]{40,1000})"),
    Place("secret", 3, r"(?i:(?:(?:as|is) (?:the|my|your|our|a)|as|als(?: das| dein)?) (?:[\w-]+ )?"
          r"(?:passwor[dt]|kennwort|passphrase|api key|token|secret))",
          r"[\"'`]?(?P<v>[^\s\"'`]{8,90})[\"'`]?,? (?:as|is|als) ", lead=r"(?<!\S)\S{8,93} \S\Z"),
    Place("password", 3, _LOGIN + r"\S",
          _LOGIN + r"(?P<v>(?=\S{0,40}[!#$%&*?+^~@])[^\s\"'`/=()<>\[\]{}]{6,90})"),
    Place("password", 1, r";\s?(?i:pwd|password)=\{", r";\s?\w+=\{(?P<v>[^\s{}]{3,100})\}"),
    Place("password", 0, _CODE_OF,
          r"\w+[ _-]\w+(?: is)?:? {1,4}[\"'`]?(?P<v>(?i:[a-z0-9]{4,6}(?:[ -][a-z0-9]{4,6}){3,15}))\b(?! [a-z])"),
    Place("recovery-code", 0, _CODE_OF,
          rf"\w+[ _-]\w+[^\n]{{0,60}}?(?:[\n:]|\\n){_ITEM}(?P<v>{_CODES}(?:{_ITEM}{_CODES}){{2,40}})"),
)
_OF = (  # a key of what; any other key is the weaker word further down
    r"(?:api|access|auth|private|secret|sign(?:ing|ature)?|(?:en|de)crypt(?:ion)?|master|service|account"
    r"|deploy|admin|app|licen[cs]e|webhook|client|shared|subscription|project|consumer|hmac|jwt|ssh|root|write|unseal|enc"
    r"|recovery|backup|cookie|csrf|product|activation|bot|integration|write|ingest|server|rest)"
)
WORDS = (
    Word("password", r"pass[ _-]?(?:word|phrase|code)|passw(?:d|rd|ort)|pwd|pswd|masterauth"
         r"|(?:db|ssh|smtp|root|user|admin|key|store|auth|require)[_-]?(?:pass|pw)|kennwort|contrase(?:n|ñ)a|senha"
         r"|wachtwoord|mot de passe|lösenord(?:et)?|hasło|adgangskode|kodeord|passord|heslo|salasana|jelszó|(?:Ş|ş)ifre"
         r"|palavra-passe|mật khẩu|kata sandi|(?:П|п)ароль|κωδικός|סיסמה|كلمة المرور|密码|密碼|パスワード"
         r"|暗証番号|비밀번호",
         1, 1, 2, 2, short=4),
    Word("secret", r"(?:api|app|client|session|jwt|cookie|auth|shared|signing|webhook|consumer)[_-]?secret|secret[_-]?key"
         r"(?:[_-]?base)?", 1, 1, 3, 3, short=8),
    Word("secret", _OF + r"[ _.-]?key|secret|token|credential|recovery[ _-]code|(?:my|our|this) key|(?:wallet|xrp|ripple|stellar|master) seed|(?-i:\b)(?:pfx|p12|pkcs12|keystore|jks)"
         r"|geheimnis|api[ -]?schlüssel|clé (?:d['’])?api|密钥|密鑰|令牌|トークン|apiキー",
         2, 2, 3, 3, short=8),
    Word("secret", r"(?:^|[^A-Za-z0-9])(?:auth|jwt|creds?|otp|pepper|totp[_-]seed)|(?-i:_PAT|_SESSION|_AUTH)",
         3, 3, 4, NEVER, short=12),
    Word("password", r"(?:^|[^A-Za-z0-9])(?:pw|mdp|clave|parola|wlan-schlüssel)", 2, 2, 2, 2, short=6),
    Word("password", r"(?:^|[^A-Za-z0-9])psk|pgpass|community[_-]?string|snmp[_-]community|(?:become|sudo|default|mail|ftp|proxy|redis|mysql|pg|postgres|mongo)[_-]pass"
         r"|(?-i:[A-Z]_PASS)", 1, 1, 2, NEVER, short=4),
    Word("password", r"(?:^|[^A-Za-z0-9])pass|(?-i:[a-z]Pass)", 2, 2, 3, NEVER, short=6),
    Word("pin", r"(?:^|[^A-Za-z0-9])pin|(?-i:[a-z]Pin)|(?:door|gate|alarm|unlock|lock|entry|safe|puk)[_-]?(?:code|combination|pin)", 1, 1, 1, NEVER, short=4),
    Word("key", r"key|salt", 4, 4, 4, NEVER, short=16),
)
ABOUT = frozenset("""
    alphabet arn at auth based cache chars charset class config count digest dir encoder endpoint entry env error errors
    expires expiry field fields file filename files fingerprint form format hash header headers hint html id ids index
    info input js json kind label len length limit list manager map max message min model msg name names object page
    param params parser path pattern per policy prefix prompt protected provider py ref regex required reset rule rules
    schema scope scopes script set size source state status stream strength suffix tests ts ttl txt type types uri url
    urls usage users validator version with yaml yml
""".split())  # a name that goes on like this is about a secret, not one: token_count, password_hint
PUBLIC = frozenset("""
    cache cached cancellation continuation cursor cycle dedup dedupe design end foreign group hash idempotency input
    item lookup map mask max min next num object output page pagination partition prefix primary prompt resume row s3
    sort start starting stop sync total unique
""".split())  # a name that begins like this is no secret: next_token, primary_key
NEUTRAL = frozenset("""
    admin again aws b b64 base base64 confirm confirmation current db default dev gitlab github hex live main new old plain primary
    prod production raw repeat root s secondary stage staging test v val value verify
""".split())  # a name may go on like this and say no more
PLAIN = frozenset("""
    请 输入 不能 为空 已 未 需要 长度 至少 过期 過期 重置 修改 忘记 见 无 同上 空 管理
    above any argument arguments ascii flag flags parameter strings auth valid eaten automatic back bad basic bearer below blank blob bool boolean bytes change changed char char[]
    chars clear click cleartext compromised confirmed constant correct custom default deleted deprecated digest disabled
    disclosed done double email empty enabled encoded encrypted enter environment error exists expired external fail
    false field file fine float forgot found generated given gone good hash hashed here hex hidden ignored immutable incorrect
    inline input int integer internal invalid jwt known lambda leaked list local login long lost manual mandatory masked
    match mismatch missing mixed name needed never new none null nullable number oauth object off ok old omitted option
    optional options pass passed passphrase password passwd passwort plain plaintext post present private prompt
    protected provided public pwd random readonly ready redacted refresh rejected required reset resource revoked right
    safe salted same saved secret secure see sensitive session set shared short skip skipped static stdin stored str
    string strong struct success symbol temporary test text textbox textfield that there this too true tuple type
    undefined unique unknown unset updated use used user username value values varchar variable vector verified visible
    void weak wrong xxx yes you your
    erforderlich falsch geheim korrekt leer notwendig nötig pflichtfeld richtig sicher unbekannt ungültig vergeben weg
    correct faux incorrecte obligatoire oublié perdu requis secrète secret valide vide
    caducada correcta incorrecta necesaria obligatoria olvidada segura válida vacía débil inválida
    correta errada forte fraca expirada inválido obrigatória obrigatório vazia
    верный забыт неверный обязателен обязательно обязательное поле изменён изменен скрыт пуст сброшен
    必須 必填 必須項目 任意 変更 エラー 错误 錯誤 正确 无效 必需 不正 確認 आवश्यक गलत क्या अनिवार्य सही مطلوبة مطلوب خاطئة غير صحيحة إلزامي
""".split())  # values that are none, and what is said of a password
PROSE = frozenset("""
    are be can cannot contains is it its must no not of or please should to with without your you this that was were will
    has have does don't must enter at
""".split())  # words of a sentence, not of a pass phrase
SMALL = frozenset("be can is it of to with this that at are no not".split())  # of them, what a pass phrase may hold, too
BIGRAMS = frozenset("""
    er in te on re ti at es st en le or nt co ar al de ra se io ed ng li ri an ro it ta me tr et ma ic ne ce as is ec
    ac ns si pe ve nd ct di la to ca pr ea lo pa el ex ss ge na ch un fi ou rs ol th am nc il po he om ut ur rt ll mp
    pl ts no em id im ty ap ad od ni ul ig mi so ot ha ke ab su ie rr oc ck mo bl da ia us va sp op ag ep ai ba ho fo
    hi cl sc gr sh ef tt oo os ci pt iv rm ly vi do um ee ir tu qu yp ow lt cr be ue cu pi up ip lu ry if wa ls fa eg
    nf iz bo ev pp bi sa ub ru rc ay ib fe ff ze rd bu gi au rn wi ga og rg du ov ds ua
""".split())  # the most common pairs of letters, in English and in the names of programs
# fmt: on


# The same as one pattern each


def _any(marks: Iterable[str]) -> str:
    """One of the marks; those that begin with the same letter, or with any sign, stand together: `re` tries few of them."""
    groups: dict[str, list[str]] = {}
    for mark in marks:
        first = mark[0] if mark[0].isalnum() else ""
        rest = mark[len(first) :]
        if re.match(r"\(\?i:(?:\(\?:)*[a-z]", mark):
            first = r"(?=\w)"
        elif re.match(r"\\s|\\\\|\\[$.]|\[(?: \\t|\\\"'|\?&)\]|[-<,:; ]", mark):
            first = r"(?!\w)"
        groups.setdefault(first, []).append(rest)
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in groups.items())


ANY_KEY = "|".join(f"(?P<k{i}>{row.mark}({row.body}))" for i, row in enumerate(KEYS) if not row.back)
MARKS = _any(row.mark for row in KEYS if not row.back)
INNER = "|".join(f"(?P<k{i}>{row.mark}{row.body})" for i, row in enumerate(KEYS) if row.back)
STANDS = _any(row.mark for row in PLACES)
WHICH = "".join(f"(?:(?={row.mark})())?" for row in PLACES)  # an empty group for each place whose mark stands there
SHAPED = _any([row.mark for row in KEYS] + [row.mark for row in PLACES])
ANY_WORD = "|".join(f"(?P<w{i}>(?i:{word.words}))" for i, word in enumerate(WORDS))
WITHIN = f"(?={ANY_WORD})"  # one may begin inside of another


@functools.cache
def rx(pattern: str, flags: int = re.ASCII) -> re.Pattern[str]:
    """A pattern, compiled at its first use: importing this module stays cheap."""
    return re.compile(pattern, flags)
