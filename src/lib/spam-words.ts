/** Words of unwanted mail, in several languages; each is compared with text in lower case. */

export const ADVANCE_FEE =
  /\b(?:million (?:us )?(?:dollars|usd|euros?|pounds)|\$ ?\d+(?:\.\d+)? ?million|inherit(?:ance|ed)|next of kin|beneficiary|fund transfer|transfer of funds?|late (?:client|husband|customer)|lottery|you (?:have )?won|winning (?:number|notification|email)|compensation fund|diplomatic|consignment|barrister|unclaimed|foreign partner|business proposal|god bless|widow|cancer|atm card|western union|moneygram|bank draft|processing fee|erbschaft|lotterie|millionen (?:euro|dollar)|h[ée]ritage|b[ée]n[ée]ficiaire|loterie|herencia|loter[íi]a|beneficiario)\b/g

export const COINS = /\b(?:bitcoins?|btc|ethereum|usdt|monero|wallet address|crypto ?wallet)\b/

export const THREAT =
  /\b(?:webcam|recorded (?:you|a video)|video of you|adult (?:site|website|video|content)|porn|masturbat\w*|trojan|malware|spyware|hacked|infected your|your contacts|i know your password|48 hours|explicit)\b/

export const CREDENTIALS =
  /\b(?:(?:verify|confirm|validate|re-?validate|update|restore|recover|unlock) (?:your |the )?(?:account|identity|mailbox|billing|payment|bank|card|wallet|profile|information|details|credentials|e-?mail account)|account (?:has been |is |was |will be )?(?:suspended|limited|locked|restricted|disabled|deactivated|blocked|on hold|terminated|closed)|unusual (?:activity|sign-?in|log-?in|login)|suspicious (?:activity|sign-?in|login|transaction)|password (?:will )?(?:expires?|has expired|expir)|mailbox (?:is )?(?:almost )?(?:full|quota|storage)|storage (?:is )?full|(?:undelivered|pending|held|quarantined) (?:messages|e-?mails)|keep (?:the )?(?:same|current) password|unpaid (?:customs|shipping)|package (?:is )?(?:on hold|pending|could not be delivered)|re-?schedule (?:your )?delivery|customs fee|tax refund|konto (?:wurde |ist )?(?:gesperrt|eingeschränkt|vorübergehend)|bestätigen sie ihr(?:e|en)? (?:konto|identität|daten|zahlungs)|compte (?:a été |est )?(?:suspendu|limité|bloqué)|cuenta (?:ha sido |está )?(?:suspendida|limitada|bloqueada)|conto (?:è stato )?(?:sospeso|bloccato|limitato))|(?:аккаунт|учетная запись|карта) (?:заблокирован|ограничен)|账[户号].{0,4}(?:异常|冻结|暂停)|アカウント.{0,10}(?:停止|制限|異常|ロック)/

export const PHARMACY =
  /\b(?:viagra|cialis|levitra|tadalafil|sildenafil|kamagra|xanax|valium|tramadol|phentermine|ozempic|online pharmacy|canadian pharmacy|no prescription|without (?:a )?prescription|male enhancement|enlarge(?:ment)?|erectile|libido|weight[- ]loss|lose \d+ (?:pounds|kg|lbs)|diet pills?|keto gummies|cbd gummies|testosterone|miracle cure|fat burn(?:er|ing)|potenzmittel|abnehmen)\b/g

export const GAMBLING =
  /\b(?:casino|free spins|jackpot|no deposit|bonus code|slots?|poker bonus|betting|roulette|hot singles|singles in your area|adult dating|hookups?|naughty|sexy|nude|lonely (?:wives|women)|wants to meet|webcam girls?|russian (?:women|brides)|mail-order brides?|freispiele|willkommensbonus)\b/g

export const EASY_MONEY =
  /\b(?:make (?:easy )?money|money from home|work(?:ing)? from home.{0,40}(?:\$|€|earn)|earn (?:up to )?[$€£]? ?\d[\d.,]*(?: ?[$€£]| ?(?:usd|eur|dollars|euros?))? (?:a|per|every|each) (?:day|week|month|hour)|guaranteed (?:returns?|profits?|income)|double your (?:money|bitcoin|investment|income)|risk[- ]free (?:investment|profit|income)|passive income|financial freedom|forex signals?|binary options|get rich|pre-?approved (?:loan|credit)|loans? (?:at|with) (?:low|\d)|no credit check|consolidate your debt|credit repair|hot stock|stock alert|penny stock|investment opportunity|schnell reich|geld verdienen|gagnez de l'argent|ganar? dinero)/

export const COLD_OFFER =
  /\b(?:guest post\w*|back-?links?|first page of google|page one of google|rank(?:ing)? (?:higher|your (?:website|site))|seo (?:services?|expert|agency|company|audit|packages?)|domain authority|web ?site (?:re)?design (?:services?|company)|mobile app development|increase (?:your )?(?:traffic|sales|leads)|lead generation|email (?:list|database)|(?:verified|targeted) (?:leads|contacts|e-?mails?)|came across your (?:website|site)|visited your website|quick call|affordable (?:price|cost|rate)s?|leading manufacturer|we are (?:a )?(?:professional )?(?:manufacturer|factory|supplier)s?|best price|moq|alibaba|bulk (?:sms|email)|outsourc\w+)\b/g

export const URGENCY =
  /\b(?:urgent(?:ly)?|immediate(?:ly)? (?:action|attention|response|required)|act (?:now|fast|immediately)|within (?:24|48|72) hours|final (?:notice|warning|reminder)|last (?:warning|chance)|limited time|expires? (?:today|soon|in 24)|do not (?:ignore|delay)|hurry|dringend|letzte (?:mahnung|warnung)|innerhalb von (?:24|48) stunden|sofort handeln|urgente|dernier avertissement|último aviso)\b|срочно|24 ?(?:時間以内|小时内)/

export const NAMELESS =
  /\b(?:dear (?:(?:e-?mail |valued |esteemed |beloved |account )?(?:friend|customer|client|user|sir|madam|beneficiary|winner|member|owner|holder|one|webmaster|site owner)|sir\/madam)|attention[:,]? (?:beneficiary|sir|winner|customer|e-?mail)|hello (?:dear|friend|my dear)|greetings (?:to you|my|dear|in)|good day (?:sir|madam|dear|to you)|sehr geehrter (?:kunde|nutzer)|cher client|estimado (?:cliente|usuario)|gentile cliente)\b|уважаемый (?:клиент|пользователь)|尊敬的(?:用户|客户)|お客様各位/iu

/** Brands that false senders like to borrow. Their real mail comes from a domain with this word in it. */
export const BRANDS =
  /\b(paypal|amazon|microsoft|office ?365|outlook|apple|icloud|netflix|dhl|fedex|ups|usps|hermes|facebook|instagram|whatsapp|linkedin|docusign|dropbox|coinbase|binance|metamask|sparkasse|volksbank|postbank|wells fargo|bank of america|chase|hsbc|barclays|santander|irs)\b/g

/** Mail boxes that anybody can have. */
export const FREE_MAIL =
  /^(?:gmail|googlemail|yahoo|ymail|hotmail|outlook|live|msn|aol|gmx|web|mail|icloud|proton|protonmail|yandex|qq|163|126|zoho|tutanota)\.(?:com|net|de|ru|me|co\.\w\w|fr|es|it|com\.\w\w)$/

export const SHORTENERS =
  /^(?:bit\.ly|tinyurl\.com|goo\.gl|t\.co|is\.gd|ow\.ly|buff\.ly|rebrand\.ly|cutt\.ly|rb\.gy|shorturl\.at|tiny\.cc|s\.id|t\.ly|v\.gd|clck\.ru|qrco\.de|urlz\.fr)$/

/** Endings of what a computer runs when it is opened. */
export const PROGRAMS =
  /\.(?:exe|scr|pif|com|bat|cmd|jse?|vbs?|vbe|ws[fh]|hta|ps1|lnk|jar|msi|msix|iso|img|vhdx?|cpl|dll|reg|chm|appx?|apk|dmg)$/
