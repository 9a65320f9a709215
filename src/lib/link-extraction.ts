import type { ReadableMail } from "./code-extraction"
import { attributeOf, decodeEntities, type HtmlTag, htmlTokens } from "./html-tokens"
import { textFromHtml } from "./text-from-html"

const MOST_CHARACTERS = 128 * 1024
const MOST_HTML = 512 * 1024
const MOST_CANDIDATES = 500

/** Also of those that are no link to anything. */
const MOST_ANCHORS = 1_000

const LEAST_LINK_SCORE = 4

/**
 * The link that the mail is about: to confirm an address, to set a new password, to sign in, to accept
 * an invitation. Logos, unsubscribing, social networks and terms are never it. Only http and https.
 */
export function extractLink(mail: ReadableMail): { url: string } | undefined {
  const best = (links: LinkCandidate[]) =>
    links
      .map((link) => ({ url: link.url, score: linkScore(link) }))
      .toSorted((a, b) => b.score - a.score)
      .find(({ score }) => score >= LEAST_LINK_SCORE)
  const found =
    best(linksOfHtml((mail.html ?? "").slice(0, MOST_HTML))) ??
    best(linksOfText((mail.text ?? "").slice(0, MOST_CHARACTERS)))
  return found && { url: found.url }
}

interface LinkCandidate {
  url: string
  /** What a reader sees: the words of the link, or the line of the text. */
  words: string
  /** What stands in front of it. */
  before: string
  is_button: boolean
  is_picture: boolean
}

const MOST_ANCHOR = 4_000

function linksOfHtml(html: string): LinkCandidate[] {
  const links: LinkCandidate[] = []
  let open: HtmlTag | undefined
  let seen = 0
  for (const token of htmlTokens(html)) {
    if (token.kind !== "tag" || token.name !== "a") continue
    const link = open && candidate(html, open, token.start)
    if (link) links.push(link)
    open = token.closing ? undefined : token
    if (open && (++seen > MOST_ANCHORS || links.length === MOST_CANDIDATES)) return links
  }
  const last = open && candidate(html, open, html.length)
  return last ? [...links, last] : links
}

/** The link of a tag, whose content ends at `end` or before. */
function candidate(html: string, tag: HtmlTag, end: number): LinkCandidate | undefined {
  const { attributes, start } = tag
  const url = usable(decodeEntities(attributeOf(attributes, "href")))
  if (!url) return undefined
  const inner = html.slice(tag.end, Math.min(end, start + MOST_ANCHOR))
  const style = `${attributeOf(attributes, "class")} ${attributeOf(attributes, "style")}`
  return {
    url,
    words: textFromHtml(inner).slice(0, 200),
    before: textFromHtml(html.slice(Math.max(0, start - 600), start)).slice(-200),
    is_button: /\bbtn|button|background(?:-color)?\s*:/i.test(style),
    is_picture: /<img\b/i.test(inner) && textFromHtml(inner.replace(/<img[^>]*>/gi, "")) === "",
  }
}

function linksOfText(text: string): LinkCandidate[] {
  const links: LinkCandidate[] = []
  for (const match of text.matchAll(/https?:\/\/[^\s<>"']{1,2000}/gi)) {
    if (links.length === MOST_CANDIDATES) break
    const url = usable(unpunctuated(match[0]))
    if (!url) continue
    const before = text.slice(Math.max(0, match.index - 200), match.index)
    const line = before.slice(before.lastIndexOf("\n") + 1)
    const is_alone = /^[\s<([*-]*$/.test(line)
    const words = is_alone ? lastLine(before) : line
    links.push({ url, words, before, is_button: is_alone, is_picture: false })
  }
  return links
}

const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1) ?? ""

/** A sentence may end behind a link, or brackets around it. */
function unpunctuated(url: string): string {
  const bare = url.replace(/[.,;:!?*'\]}]{1,10}$/, "")
  return bare.endsWith(")") && !bare.includes("(") ? bare.slice(0, -1) : bare
}

function usable(href: string): string | undefined {
  const url = href.trim()
  if (!/^https?:\/\/[^\s/]/i.test(url) || url.length > 2_000 || /[\s\p{Cc}]/u.test(url))
    return undefined
  return URL.canParse(url) ? url : undefined
}

const PURPOSE =
  /confirm|verif|activat|re-?set|new password|magic|sign[ -]?(?:in|up)|log[ -]?in|accept|invit|join|valida(?:te|r|tion)|authori[sz]e|unlock|complete (?:your )?(?:registration|sign)|get started|continue|set (?:a |your )?(?:new )?password|bestätig|aktivier|zurücksetz|anmeld|einlogg|freischalt|annehmen|verifizier|passwort|kennwort|confirmer|vérifi|activer|réinitialis|connecter|connexion|accepter|valider|mot de passe|confirmar|verificar|activar|ativar|restablecer|redefinir|iniciar sesión|entrar|aceptar|aceitar|contraseña|senha|conferma|verifica|attiva|reimposta|reimpostare|accedi|accetta|bevestig|activeer|herstel|inloggen|wachtwoord|bekräfta|aktivera|återställ|logga in|bekræft|bekreft|nulstil|vahvista|potwierd|aktywuj|zaloguj|hasł|potvrd|obnov|onayla|doğrula|sıfırla|подтверд|активир|сброс|войти|пароль|确认|验证|激活|重置|登录|登入|確認|認証|有効化|リセット|ログイン|설정|확인|인증|로그인/iu

const PURPOSE_IN_PATH =
  /confirm|verif|activat|reset|password|passwd|magic|sign-?in|log-?in|invit|accept|callback|auth|token|validate|unlock|recover|onboard/i

/** Not what the mail is about, though it stands in most of them. */
const BESIDE =
  /unsubscribe|abmelden|abbestell|désabonn|desinscri|se désinscrire|darse de baja|cancelar (?:la )?suscri|disiscri|annulla l'iscrizione|uitschrijven|avregistrera|afmeld|wypisz|отписа|退订|配信停止|수신거부|opt-?out|preferences|einstellungen|manage (?:your )?(?:notification|subscription|email)|view (?:this )?(?:e-?mail |message )?(?:in|online)|im browser|dans (?:votre )?navigateur|en el navegador|privacy|datenschutz|confidentialit|privacidad|terms|agb\b|impressum|legal|help ?(?:cent|desk)|support|contact|faq|learn more|read more|blog|download|app store|google play|add (?:us )?to/iu

const NOT_ME =
  /did ?n[o']t (?:request|create|sign|make)|was ?n[o']t (?:you|me)|not (?:you|me)\b|wasn['’]t|report (?:it|this|abuse)|secure (?:my|your) account|cancel|decline|nicht (?:sie|du|ich|von)|ablehnen|ce n'est pas|no (?:fuiste|fui|solicit)|reject|revoke|block\b/iu

const BESIDE_URL =
  /unsubscribe|opt-?out|list-manage|preferences|\/privacy|\/terms|\/legal|\/help|\/support|\/contact|\/faq|\/blog|webview|view-?in-?browser|\.(?:png|jpe?g|gif|svg|css|ico|woff2?|webp)(?:[?#]|$)/i

const SOCIAL =
  /^https?:\/\/(?:[\w-]+\.)*(?:facebook|twitter|x|instagram|linkedin|youtube|tiktok|pinterest|apps\.apple|play\.google|t\.me|wa\.me|discord)\.(?:com|gg|me)?(?:[/?#]|$)/i

const TOKEN_VALUE = /[A-Za-z0-9_~.%=-]{16,}/
const TOKEN_KEY =
  /[?&#/](?:[\w-]*token|code|key|otp|ticket|hash|oobcode|sig(?:nature)?|nonce|t|c|k)[=/]/i

function linkScore({ url, words, before, is_button, is_picture }: LinkCandidate): number {
  const { pathname, search, hash } = new URL(url)
  const target = `${pathname}${search}${hash}`
  if (BESIDE_URL.test(url) || SOCIAL.test(url)) return 0
  if (is_picture && !PURPOSE.test(words)) return 0
  if (NOT_ME.test(words) || (BESIDE.test(words) && !PURPOSE.test(words))) return 0
  const near = before.slice(-120)
  const has_token =
    TOKEN_VALUE.test(target.replace(/\/[a-z-]{16,}(?=\/|$)/g, "")) || TOKEN_KEY.test(target)
  return (
    (PURPOSE.test(words) ? 5 : 0) +
    (PURPOSE_IN_PATH.test(target) ? 3 : 0) +
    (PURPOSE.test(near) ? 1 : 0) +
    (has_token ? 3 : 0) +
    (is_button ? 1 : 0) -
    (NOT_ME.test(near) ? 4 : 0) -
    (target === "/" || target === "" ? 6 : 0) -
    (BESIDE.test(words) ? 4 : 0)
  )
}
