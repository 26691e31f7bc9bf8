"""The words by which ten languages speak of secrets: one row per language, one column per part of the grammar in
`prose.py`. A column is a regular expression for RE2 and `re` alike, so that a letter beyond ASCII stands in no class."""

from typing import NamedTuple


class Language(NamedTuple):
    """The words of one language."""

    password: str
    token: str  # keys and tokens, which look random
    number: str  # PINs and codes for one time
    recovery: str  # codes to log in without the second factor
    answer: str  # to a security question
    link: str  # between the noun and its value
    use: str  # what one does with a password: type, enter
    role: str  # between a value and the noun: as, is
    rest: str  # words that may follow a value
    act: str  # what else tells of a password: to log in, to open an archive
    lock: str  # what else opens with digits
    latin: bool = False
    dense: bool = False  # writes no spaces between words


# fmt: off
LANGUAGES = (
    Language(  # English
        r"pass[ _-]?(?:word|phrase|code)|passw(?:d|rd)|pwd|pswd|wi-?fi (?:key|pass)|(?:safe|code|secret|magic) ?word|(?:unlock|secret) phrase|door code|alarm code|gate code",
        r"(?:api|access|secret|bearer|auth|private|license|deploy|signing|encryption)[ _-](?:key|token|secret)|token",
        r"(?-i:PIN|OTP)(?:[ -]?(?:code|number))?|pin[ -]?(?:code|number)|otp|(?:my|the|your|our) pin"
        r"|(?:one[ -]time|verification|login|sign-?in|confirmation|authentication|auth|sms|2fa|mfa|security|access|unlock|door|alarm|gate|safe|entry|lock)"
        r"[ -](?:code|password|passcode|pin|combination)|passcode",
        r"(?:recovery|back-?up|rescue|emergency|scratch|2fa|mfa)[ -](?:codes?|keys?)",
        r"(?:security|secret)[ -](?:question|answer)|maiden name|memorable (?:word|name|place)|(?:my|the|your|his|her|our) first (?:pet|car|school|teacher)|first pet|childhood nickname|answer to the (?:security|secret) question",
        r"(?:is|was|are|will be|reads|remains|stays|says)(?: now| still| just| simply| currently| always| actually| set to| literally)?"
        r"|(?:re)?set to|changed to|now|answer(?:ed)?(?: is| was)?|put",
        r"type|enter|use|try|punch in|type in|put in|say",
        r"as|is|was|that['’]s|that is|works as|will be|for|being",
        r"and|but|for|on|in case|until|at|so|then|if|please|to log|with|don['’]t|do not|thanks|thx|btw|by the way|should|or",
        r"log(?:ged|ging)?[ -]?[io]n(?: as)?|sign(?:ed|ing)?[ -]?in|cred(?:ential)?s|lets? (?:me|you|us|him|her) in|lock(?:ed|s) (?:me |you |us |him |her )?out|guessed|wi-?fi|(?:the|my|our) router|rdp|remote desktop|guest access|root account|netflix|spotify|steam|icloud|paypal|gmail|portal"
        r"|zip|archive|(?:open|opens) (?:it )?with|last ?pass|1password|bitwarden|keepass|bitlocker|sudo asks|temporary (?:one|pw)|the (?:new|old|other|same) (?:one|bit)|reset (?:it )?to"
        r"|rotated|changed it|set it to|made it|connects? (?:\S+ ){0,3}as|user ?name|(?:my|our|his|her|your|guest|demo) (?:account|pw|pass|login|master)|(?:admin|root|db|guest|old|new) (?:pw|pass)|pw|paswd|secure ?code|pasword|passwrd|ever use",
        r"puk|pins?|unlock(?:s|ed)?|opens? with|texted|buzz|(?:backup|recovery) codes?|bike lock|keypad|(?:my|your|its|door|gate|garage|building|front|back|side|lock|safe) code|the code(?:['’]s| is|:)|(?:the|our|my) (?:alarm|safe)|safe (?:in|at|under|behind|upstairs)|disarm\w*|padlock|lock ?box|locker|combination|combo|doors? opens?|got the text|by text|voice ?mail|host pin|participant|luggage", latin=True,
    ),
    Language(  # German
        r"passw(?:o|ö|oe)rt(?:er|s|es)?|kennwort|losungswort|zugangswort|wlan-?(?:schlüssel|passwort|key)|passphrase|zugangscode",
        r"(?:api|zugriffs|zugangs|geheim|lizenz)[- ]?(?:schlüssel|token|key)|geheimnis|geheimer schlüssel",
        r"(?-i:(?:m|push)?TAN)|(?:pin|geheim)(?:-?nummer|zahl|-code)|(?:einmal|bestätigungs|verifizierungs|sicherheits|anmelde|freischalt|tür|alarm|zugangs|sms-|prüf)-?(?:code|kennwort|passwort|pin)",
        r"(?:wiederherstellungs|backup|notfall|ersatz|rettungs)-?(?:codes?|schlüssel|keys?)",
        r"sicherheits(?:frage|antwort)|geheim(?:e frage|e antwort|frage|antwort)|mädchenname[nr]?(?: meiner mutter)?",
        r"(?:ist|lautet|heißt|wäre|war|sind|bleibt|antworte ich(?: immer)?|antwort ist|auf)(?: jetzt| nun| weiterhin| einfach| immer| aktuell)?",
        r"tippe?|gib|gebe|nimm|nutze|verwende|eingeben|benutze", r"als|ist|lautet|für",
        r"und|aber|bitte|für|bis|falls|damit|dann|auf|oder|wenn|nicht|danke",
        r"melde? (?:dich|mich)|anmeld\w+|einlogg\w+|zugang(?:sdaten)?|konto|entsperr\w+|archiv|kommst du rein",
        r"puk|(?:der|den|dein|mein|unser) code|tresor|schloss|haustür|alarmanlage|tastenfeld|spind|mailbox", latin=True,
    ),
    Language(  # French
        r"mots? de passe|mdp|clé (?:du )?wi-?fi|code (?:du portail|de l['’]alarme|d['’]entrée|de la porte)",
        r"clé (?:d['’]|de l['’])?api|jeton(?: d['’]accès)?|clé (?:secrète|privée|d['’]accès)",
        r"code (?:pin|secret|de vérification|de confirmation|de sécurité|à usage unique|de validation|de connexion|unique|reçu|sms|de déverrouillage)",
        r"codes? de (?:récupération|secours|sauvegarde)|clé de (?:récupération|secours)",
        r"question (?:secrète|de sécurité)|phrase (?:de passe|secrète)|réponse (?:secrète|de sécurité|à la question)|nom de jeune fille",
        r"(?:est|c['’]est|sera|était|sont|devient|reste|demeure|vaut|il faut répondre|je réponds|j['’]ai répondu|j['’]ai mis)(?: maintenant| désormais| toujours| simplement)?",
        r"tape[zr]?|saisi(?:s|r|ssez)|mets|utilise[zr]?|entre[zr]?", r"comme|est|c['’]est|en tant que|pour",
        r"et|mais|pour|ne|s['’]il|merci|jusqu['’]|sur|afin|puis|ou|si|donc",
        r"connecte(?:r|z|s|-toi)?|connexion|identifiants?|compte|s['’]ouvre|déverrouille\w*",
        r"(?:le|du|ton|mon|votre|un|avec) code|digicode|coffre|alarme|cadenas|interphone|portail|puk", latin=True,
    ),
    Language(  # Spanish
        r"contraseñas?|contrasenas?|clave(?: de acceso| secreta| maestra)?|clave (?:del |de la )?wi-?fi|palabra clave",
        r"clave (?:de (?:la )?)?api|clave (?:secreta|privada)|llave (?:de )?api|secreto",
        r"(?:código|codigo|clave) (?:pin|secreto|de (?:verificación|confirmación|seguridad|acceso|un solo uso|desbloqueo|validación|la alarma|la puerta)|sms)|el pin|mi pin|nip",
        r"(?:código|codigo)s? de (?:recuperación|respaldo|emergencia|rescate|seguridad de respaldo)|clave de recuperación",
        r"pregunta (?:secreta|de seguridad)|frase (?:de paso|de contraseña|secreta)|respuesta (?:secreta|de seguridad)|apellido de soltera",
        r"(?:es|era|son|será|sería|queda|sigue siendo|puse|respondo|contesto|respondí|pon)(?: ahora| siempre| simplemente)?",
        r"escribe|teclea|pon|usa|introduce|mete|ingresa", r"como|es|de|para",
        r"y|pero|para|por|no|hasta|en|luego|o|si|gracias",
        r"entra(?:r|s)?|inicia(?:r)? sesión|usuario|cuenta|abrir(?:lo|la)?|desbloquea\w*",
        r"código|puk|caja fuerte|portal|alarma|candado|taquilla", latin=True,
    ),
    Language(  # Portuguese
        r"senhas?|palavras?[- ]passe|palavra-chave|chave (?:do |da )?wi-?fi",
        r"chave (?:da |de |d[ao] )?api|token(?: de acesso)?|chave (?:secreta|privada|de acesso)|segredo",
        r"(?:código|codigo) (?:pin|secreto|de (?:verificação|confirmação|segurança|acesso|uso único|desbloqueio|autenticação|validação)|do alarme|da porta|sms)|o pin|meu pin",
        r"(?:código|codigo)s? de (?:recuperação|backup|emergência|resgate)|chave de recuperação",
        r"pergunta (?:secreta|de segurança)|frase[- ](?:senha|secreta|passe)|resposta (?:secreta|de segurança)|nome de solteira",
        r"(?:é|e|era|são|será|seria|ficou|continua|virou|respondi|eu respondi|respondo|coloquei|foi)(?: agora| sempre| simplesmente| mesmo)?",
        r"digite|digita|usa|use|coloque|coloca|insira|põe", r"como|é|de|para",
        r"e|mas|para|por favor|por|não|até|no|na|depois|ou|se|obrigad",
        r"entra(?:r)?|login|usuário|(?:minha|tua|sua|da|na) conta|abrir|desbloque\w+",
        r"código|puk|cofre|portão|alarme|cadeado|armário", latin=True,
    ),
    Language(  # Russian
        r"(?:П|п)арол(?:ь|я|ю|ем|и|ей|ях)|(?:К|к)одов(?:ая|ой|ую) фраз(?:а|ы|у)|(?:П|п)арольн(?:ая|ой|ую) фраз(?:а|ы|у)|(?:К|к)люч от вай-?фа(?:я|й)",
        r"(?:Т|т)окен(?:а|ом)?|(?:API|api|АПИ)[- ]?ключ|(?:К|к)люч(?:ом|а)? (?:API|api|доступа|апи)|(?:С|с)екретн(?:ый|ого) ключ|(?:С|с)екрет(?:а|ом)?",
        r"(?:П|п)(?:ин|ИН)(?:-?код(?:а|ом)?)?|(?:К|к)од(?:а|ом)? (?:подтверждения|доступа|из смс|из SMS|безопасности|проверки|от домофона|от сейфа|входа|авторизации)"
        r"|(?:О|о)дноразов(?:ый|ого) (?:код|пароль)|(?:С|с)мс-код|(?:П|п)роверочный код",
        r"(?:К|к)од(?:ы|а|ов)? восстановления|(?:Р|р)езервны(?:й|е|х|ого) код(?:ы|ов|а)?|(?:К|к)люч восстановления|(?:З|з)апасн(?:ой|ые) код(?:ы)?",
        r"(?:К|к)онтрольн(?:ый|ого|ому) вопрос(?:а|у)?|(?:С|с)екретн(?:ый|ого|ому) (?:вопрос|слов)(?:а|у|о)?|(?:К|к)одово(?:е|го) слово?|(?:Д|д)евичья фамилия(?: матери)?",
        r"(?:это|есть|теперь|был|будет|стал|у меня|такой|такая|такое|отвечаю|ответ|равен|сейчас)(?: теперь| сейчас| просто| всегда)?",
        r"введи(?:те)?|набери(?:те)?|используй(?:те)?|вбей", r"как|в качестве|это|для",
        r"и|но|для|не|а|пожалуйста|до|на|чтобы|если|или|только|никому",
        r"войти|за(?:йди|ходи)\w*|логин\w*|архив\w*|уч(?:ё|е)тк\w*|аккаунт\w*|распаков\w*|запаролен\w*", r"код|сейф\w*|домофон\w*|пук|замок|замка|шкафчик\w*",
    ),
    Language(  # Chinese
        r"密码|密碼|口令|通行短语|密钥短语|暗号", r"密钥|密鑰|令牌|访问令牌|私钥",
        r"PIN码|验证码|驗證碼|动态码|动态密码|校验码|一次性(?:密码|代码|验证码)|门禁码|短信码|确认码|安全码|解锁码|锁屏密码|取款密码",
        r"恢复(?:码|代码|密钥)|备用(?:码|代码|验证码)|恢復碼|备份(?:码|代码)|救援码",
        r"(?:密保|安全|安全验证|找回)(?:问题|答案|問題)(?:的?答案)?|密保|母亲的(?:娘家姓|姓氏|名字)",
        r"是|为|為|就是|改成了?|改为|设为|设成|设置为|设置成|换成了?|叫|写的是|填的?是?|回答|用|等于|变成了?", r"输入|填|用|试试|敲",
        r"作为|当作?|做|作|是|就是|设为|设成|当成", r"也|吧|了|哦|啊|呢|别|请|就|的|来|登录|进去|不要|可以",
        r"登录|登陆|账号|帐号|账户|用户名|解压|解锁|压缩包", r"保险箱|保险柜|门锁|密码锁|提取码|取件码|门口|验证", dense=True,
    ),
    Language(  # Japanese
        r"パスワード|パスフレーズ|パスコード|合言葉|暗証番号|暗号キー|wi-?fiのキー", r"トークン|apiキー|シークレット(?:キー)?|秘密鍵|アクセスキー|鍵は|ライセンスキー",
        r"暗証番号|PINコード|PIN番号|ピン番号|(?:認証|確認|ワンタイム|検証|セキュリティ|ログイン|解除|二段階認証の?|承認)(?:コード|パスワード|キー|番号)|パスコード",
        r"(?:リカバリー?|復旧|回復|バックアップ|予備|緊急)(?:用)?(?:コード|キー)", r"秘密の(?:質問|答え|合言葉)(?:の答え|への答え)?|セキュリティの?質問(?:の答え)?|母の旧姓|合言葉",
        r"(?:これ)?(?:は|が|を|:|に|って|として)(?:、|これです[:：]|確か|たしか|今は|今|現在|やっぱり)?|これです|の答え|の値は", r"入力|使って|打って",
        r"を|が|は|として", r"です|で|なので|だ|に|を|と|から|ね|よ|だった|になり|って|ので|にし|という|でし|を使|の",
        r"ログイン|ユーザー|アカウント|zip|解凍|ロック", r"金庫|ドア|オートロック|ロッカー|コード|番号", dense=True,
    ),
    Language(  # Hindi
        r"पासवर्ड|कूटशब्द|कूट शब्द|पासफ़्रेज़|पासफ्रेज|पासकोड|गुप्त शब्द", r"टोकन|(?:एपीआई|API|api) (?:कुंजी|की)|गुप्त कुंजी|सीक्रेट(?: की)?|एक्सेस टोकन",
        r"(?:एटीएम )?पिन(?: कोड| नंबर)?|ओटीपी|(?:सत्यापन|वेरिफिकेशन|पुष्टि|सुरक्षा|लॉगिन) कोड",
        r"(?:रिकवरी|बैकअप|पुनर्प्राप्ति|आपातकालीन) (?:कोड|कुंजी|की)", r"(?:सुरक्षा|गुप्त|सिक्योरिटी) (?:प्रश्न|सवाल)(?: का (?:उत्तर|जवाब))?|(?:गुप्त|सुरक्षा) (?:उत्तर|जवाब)",
        r"है|यह है|यह रहा|यह|अब|था|हैं|रखा|का|के|की", r"डालो|डालें|दर्ज करें|टाइप करें|लिखो", r"को|ही|है|मेरा|का|के रूप में",
        r"है|हैं|था|और|पर|लेकिन|रखा|कर|डाल|लिख|किसी|मत|रख|से|के|को|हो|बदल|भेज|संभाल",
        r"लॉग ?इन|खोल\w*|यूज़र|खाता|अकाउंट", r"ताला|ताले|कोड|तिजोरी|लॉकर",
    ),
    Language(  # Arabic
        r"كلم(?:ة|ات) (?:ال)?(?:مرور|سر)|كلمة (?:ال)?دخول|(?:ال)?باسوورد|(?:ال)?باسورد|عبارة (?:ال)?(?:مرور|سر)|الرقم السري|الرمز السري",
        r"(?:ال)?توكن|مفتاح (?:ال)?(?:API|api|واجهة|وصول|سري)|رمز (?:ال)?(?:وصول|API|api)|المفتاح السري",
        r"(?:ال)?رقم (?:ال)?سري|رمز (?:ال)?(?:PIN|pin|تحقق|تأكيد|مصادقة|تفعيل|دخول|أمان|بطاقة|قفل)|كود (?:ال)?(?:تحقق|تفعيل|تأكيد|دخول)|(?:ال)?رمز (?:ال)?سري",
        r"(?:رمز|رموز|كود|أكواد|مفتاح) (?:ال)?(?:استرداد|استعادة|احتياطي|نسخ|طوارئ|استرجاع)(?:ة|ي)?|(?:الرموز|الأكواد) الاحتياطية",
        r"(?:جواب|إجابة|اجابة) (?:سؤال|السؤال) (?:ال)?(?:أمان|سري|أمني)|سؤال (?:ال)?(?:أمان|سر)|(?:ال)?إجابة (?:ال)?سرية|السؤال السري",
        r"(?:هي|هو|صارت?|أصبحت?|كانت?|الآن|تكون|يكون|الذي وصلني|عندي)(?: الآن| دائما)?", r"اكتب|أدخل|ادخل|استخدم|استعمل", r"ك|هي|هو|كـ",
        r"و|ولا|لكن|من|في|على|ثم|حتى|إذا|لا|ل|أدخله|وأرسل|شكر",
        r"(?:ا|أ)دخل|(?:ال)?دخول|(?:ال)?حساب\w*|المستخدم|افتح", r"(?:ال)?(?:رمز|كود|خزنة|قفل|رقم|بوابة)",
    ),
)
# fmt: on
