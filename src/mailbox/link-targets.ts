import { linksInHtml, linksInText, type MailLink } from "../lib/mail-links"
import { headerFields } from "../lib/mail-text"

export interface LinkTarget {
  url: string
  /** A look at it could end a subscription, or answer in the reader's name: it is never fetched. */
  is_unsubscribe: boolean
}

const MOST_TARGETS = 200
/** No more than `untrackedHtml` reads, or a tracked link would be asked. */
const MOST_CHARACTERS = 2_000

/** The pages of this server on which a recipient unsubscribes or chooses. */
const OWN_PAGES = /^\/[up]\/[^/]+$/

/**
 * The http and https addresses of a mail, each once, without the part behind `#`. Those of the text are
 * listed where there is no html. They always tell which address may end a subscription.
 */
export function linkTargets(
  raw: Uint8Array,
  { html, text }: { html: string | null; text: string | null },
): LinkTarget[] {
  const listed = targetsOf(linksInHtml(html ?? ""))
  const named = targetsOf(linksInText(text ?? ""))
  const marked = [...listed, ...named].filter(({ is_unsubscribe }) => is_unsubscribe)
  const ends = unsubscribeAddresses(raw).union(new Set(marked.map(({ url }) => url)))
  const urls = new Set((html === null ? named : listed).map(({ url }) => url))
  return [...urls].slice(0, MOST_TARGETS).map((url) => ({ url, is_unsubscribe: ends.has(url) }))
}

const targetsOf = (links: MailLink[]): LinkTarget[] =>
  links.flatMap(({ href, surroundings }) => {
    const url = URL.parse(href)
    if (!url || !/^https?:$/.test(url.protocol) || href.length > MOST_CHARACTERS) return []
    const is_unsubscribe = isUnsubscribeSign(surroundings) || isUnsubscribe(url)
    return [{ url: withoutHash(url), is_unsubscribe }]
  })

/** Whether an address looks as if it ended a subscription. */
export const isUnsubscribe = ({ hostname, pathname, search, hash }: URL): boolean =>
  isUnsubscribeSign(decoded(decoded(`${hostname}${pathname}${search}${hash}`))) ||
  OWN_PAGES.test(pathname)

/** Piece by piece, because one wrong escape must not hide the rest. */
const decoded = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes)
    } catch {
      return " "
    }
  })

/** Those of `List-Unsubscribe` (RFC 2369): a program may press them with one click (RFC 8058). */
export function unsubscribeAddresses(raw: Uint8Array): Set<string> {
  const named = headerFields(raw).flatMap(([name, value]) =>
    /^list-(?:unsubscribe|subscribe|post|owner)$/.test(name)
      ? [...value.matchAll(/<\s*(https?:[^>]+)>|(https?:[^\s,<>]+)/gi)]
      : [],
  )
  const urls = named.map(
    ([, address, bare = ""]) => URL.parse((address ?? bare).replace(/\s+/g, "")), // a long address may be folded
  )
  return new Set(urls.flatMap((url) => (url ? [withoutHash(url)] : [])))
}

/** As a server is asked for it. */
export function withoutHash(url: URL): string {
  const asked = new URL(url)
  asked.hash = ""
  return asked.href
}

/**
 * Stems and phrases that stand near a link which ends a subscription. They are regular expressions over
 * `simplified` texts: a space at an end is the end of a word.
 */
const SIGNS = [
  // English
  "unsub| opt(ed)? ?out|list ?manage|listserv|subscription| preferences? | signoff |unfollow",
  " (remove|removed|removal|removing) | (leave|quit) \\S+ (mailing )?list| taken? (me |my |us )?off ",
  " (stop|end|cease) (receiving|getting|sending|these|this|those|all|our|e ?mail|mail|news)",
  " no (longer|more) (want|wish|like|care|receiv|interest|get|e ?mail|mail|message|news)",
  " (do not|don ?t|does not|doesn ?t|not|never) (want|wish|care|like) ",
  " (rather|prefer) not | not (to )?(receive|hear from|get) ",
  " (e ?mail|mail|mailing|notification|newsletter|communication)s? (setting|option|choice)",
  " (manage|change|update|edit) (your )?(e ?mails?|mails?|mailings?|notif|newsletter|alert)",
  " (turn|switch) off| (mute|disable|deactivate|cancel) (these|this|your|my|the|all|e ?mail)",
  " cancel (notif|alert|digest|newsletter|updates|membership)",
  // German
  "abmeld|abbestell|austrag| abo |keine (weiteren )?(e )?mail|kundig|widerruf|widersprech",
  " melde\\p{L}* (.{1,40} )?ab | bestell\\p{L}* (.{1,60} )?ab | trag\\p{L}* (.{1,60} )?aus ",
  "(nicht|keine\\p{L}*) (.{1,40} )?(mehr|langer|weiter\\p{L}*) (.{1,30} )?(erhalten|empfangen|bekommen|wunsch)",
  "deaktivier|einstellungen (fur|der|ihrer) (e )?mail",
  // French, and what other languages took from it
  "abonn?e(r|men|n)|desabon|desinscr|resili(er|ez|ation)| (me|vous) retirer",
  "ne (plus|pas) (.{1,20} )?(recevoir|etre)|ne (souhaite|desire|veu|voule)\\p{L}* (plus|pas)",
  "(annul|retir)\\p{L}* (.{1,20} )?(inscription|liste)|gerer (vos|mes|les) (preference|e mail|alerte)",
  // Spanish, Catalan, Basque
  " baja | baixa |cancel(ar|a|e|ad|o| lar) |desu[bs]*scri|desapunt|sub?scripci|harpidetza",
  "(no|dejar de) (.{1,20} )?recibir|eliminar(me)? (.{1,20} )?lista",
  // Portuguese
  "descadastr|(sub|in)scricao|(deixar de|nao) (.{1,20} )?receber|cancelamento|assinatura",
  "remov(er|a) (.{1,20} )?(e mail|lista|endereco)| sair da lista",
  // Italian
  "disiscri|disabbon|cancella(ti|rsi|rti) |non (.{1,20} )?ricever|(non|piu) (desider|vuoi|vuole)",
  "(annull|cancell|revoc)\\p{L}* (.{1,20} )?(iscrizion|abbonament|sottoscri|registraz)",
  // Dutch, Afrikaans
  "uitschrijv|uitgeschrev|afmeld|opzeg|teken (.{1,20} )?uit |kanselleer",
  " schrijf (.{1,40} )?uit | meld (.{1,40} )?af |wil(t|len)? (.{1,20} )?geen",
  "(niet|geen) (.{1,30} )?(langer|meer) (.{1,30} )?(ontvang|krijg)",
  // Scandinavian languages, Icelandic
  "av(registr|prenumer|anmal|bestall|meld|abonner)|prenumer|af(registr|skra|þakka)|frameld|opsig",
  " meld (.{1,40} )?(av|fra) |a[vf]slut|(inte|icke) langre|sluta (.{1,20} )?(fa|ta emot) ",
  "ikke (.{1,20} )?(lenger|laengere|længere|flere) |haetta askrift",
  // Finnish, Estonian
  "peru(ut| (.{1,20} )?(tila|uutis))|tilau(s|ksen)|lopeta| en halua| et halua|loobu|tuhista",
  "poist(u|a) (.{1,20} )?(lista|postitus)",
  // Polish, Czech, Slovak
  "wypis[zau]|rezygn|anuluj|subskrypcj|nie chc|(usun|zakoncz) (.{1,20} )?(list|otrzym|newslet)",
  "odhlas|zrusit| odber|nechcete|nepr[ae]je|odregistr",
  // South Slavic languages
  "odjav|odpis(i|ete)|otkaz|одјав|pretplat|ne zelite|narocnin",
  // Hungarian, Romanian, Baltic languages, Albanian, Maltese
  "(le|fel)iratkoz|lemond(as|ani|hat|om|ja)|nem (.{1,20} )?(szeretne|kivan|ker)",
  "dezabon|renunt|anula\\p{L}* (.{1,20} )?(abon|inscri)|nu (.{1,20} )?(doriti|mai dor|primi)",
  "atraksti|atteikt|atsisak|nebenor|cregjistr| anulo| ndalo| abono",
  // Celtic languages, Turkish, Swahili
  "diolchrestr|dad [dt]anysgrif|diliostail|jiondo",
  "abone|listeden|uyeli[gk]|[iı]stem[ie]yor|almak istem|iptal",
  // Greek
  "διαγραφ|απεγγραφη|καταργηση|συνδρομ|δεν (.{1,20} )?(θελετε|επιθυμειτε)",
  // Cyrillic scripts, Armenian, Georgian
  "отпи[сш]|подписк|відпис|підписк|адпіс|падпіск|отказ|відмов|рассылк|розсилк|отмен|скасув",
  "не (.{1,20} )?(хотите|желаете|искате|получать|бажаєте|хочете|отримувати)|абон(амент|ирам)|прекрат",
  "գրանցում|հրաժարվել|ապաբաժանորդագր|გამოწერ|გაუქმ",
  // Chinese, Japanese, Korean
  "退[订訂出会]|取消|[订訂][阅閱]|訂阅|拒[收否]|解[除約]|移除|停止|不再接收|購読|オプトアウト|アンサブスクライブ|不要な",
  "(停止|不再|不想|不愿|不願|不希望|無需|无需|不要).{0,6}(接收|收到|收取|发送|發送|訂|订|邮件|郵件)",
  "希望(し(ない|ません)|されない)|登録を?(削除|取)",
  "수신 ?(거부|을|동의|해제|차단)|구독|해지|거부|탈퇴|받지 않|원하지 않|원치 않",
  // Arabic script, Hebrew
  "اشتراك|اشتراک|الغاء|لغو|لا (ترغب|تريد)|التوقف عن|ايقاف|انصراف|سبسکرا|عضویت|رکنیت",
  "הסר|הסיר|ביטול|לבטל|מנוי|רשימת (ה)?תפוצה|לא (.{1,20} )?(לקבל|מעוני)",
  // Languages of India
  "सदस्यता|अनसब्सक्राइब|सब्सक्रिप्शन|रद्द|सदस्यत्व|সাবস্ক্রা|সাবস্ক্রি|সদস্যতা|বাতিল|குழுவிலக|சந்தா",
  "సభ్యత్వ|చందా|అన్‌సబ్‌స్క్రయిబ్|ಅನ್‌ಸಬ್‌ಸ್ಕ್ರೈಬ್|ಚಂದಾ|അൺസബ്‌സ്ക്രൈബ്|വരിക്കാര|સબ્સ્ક્રા|સબ્સ્ક્રિ|ਗਾਹਕੀ|ਅਨਸਬਸਕ੍ਰਾਈਬ",
  // Thai, Indonesian, Malay, Vietnamese, Filipino
  "ยกเลิก|เลิกรับ|ไม่ต้องการรับ|berhenti|langganan|nyahlanggan|mag ?unsub|itigil",
  "huy dang|(ngung|muon|tu choi) nhan|huy theo doi",
]

/**
 * Whether a text near a link, or a part of its address, looks as if the link ended a subscription. A
 * look that is wrong costs a link that nobody asks; a miss would end a subscription.
 */
const isUnsubscribeSign = (text: string): boolean => ANY_SIGN.test(simplified(text))

/** Accents of references that `decodeEntities` leaves as they are. */
const ACCENTED =
  /&([a-z])(?:acute|grave|circ|uml|tilde|cedil|ring|caron|ogon|slash|macr|breve|strok|dot|dblac);/gi

/** In small letters without marks and hidden characters; what separates words is one space. */
function simplified(text: string): string {
  const words = withoutMarks(text.replace(ACCENTED, "$1")).replace(/[\p{P}\p{S}\s_]+/gu, " ")
  return ` ${words.toLowerCase()} `
}

const withoutMarks = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/[\p{M}\p{Cf}]/gu, "")
    .normalize("NFC")
    .replace(/[đĐ]/g, "d")

const ANY_SIGN = new RegExp(SIGNS.map(withoutMarks).join("|"), "u")
