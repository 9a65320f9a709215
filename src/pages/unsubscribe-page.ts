import {
  nameOf,
  resubscribe,
  type Subscription,
  subscriptionsOf,
  type UnsubscribeWay,
  unsubscribe,
} from "../consents/unsubscribe"
import type { UnsubscribeScope } from "../consents/unsubscribe-links"
import { type FoundLink, lookupLink } from "../consents/unsubscribe-links"
import type { ApiError } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { withDefaults } from "../identity/caller"
import type { Store } from "../store/store"
import { html, Markup } from "./html"
import { lookOf, type PageLook, recipientPage, UNKEPT } from "./recipient-page"
import type { UnsubscribeWords } from "./unsubscribe-words"

export interface UnsubscribePageParts {
  store: Store
  secrets: Secrets
}

/** The fields of a form, as they came. */
export type FormFields = Record<string, string | undefined>

/** A request to one of the pages behind a link. */
export interface LinkVisit {
  request: Request
  token: string
  ip: string
}

/** Looking changes nothing: scanners of mail follow links. */
export async function showUnsubscribe({ store }: UnsubscribePageParts, visit: LinkVisit) {
  const link = await lookupLink(store.read, visit.token)
  if (!link) return invalidLink(visit.request)
  const look = lookOfLink(visit.request, link)
  return (await isSubscribed(store, link)) ? question(look, link) : done(look, link, visit.token)
}

/**
 * Ends the mail that the link is about: for a mail program, which posts `List-Unsubscribe=One-Click`
 * and gets no page (RFC 8058, 3.2), or for the button of the page. Any other form changes nothing.
 */
export async function answerUnsubscribe(
  { store, secrets }: UnsubscribePageParts,
  visit: LinkVisit,
  form: FormFields,
): Promise<Response> {
  const link = await lookupLink(store.read, visit.token)
  if (!link) return invalidLink(visit.request)
  const look = lookOfLink(visit.request, link)
  const is_one_click = form["List-Unsubscribe"] === "One-Click"
  if (!is_one_click && form.action !== "unsubscribe") return question(look, link, 422)
  const { ip } = visit
  const way: UnsubscribeWay = is_one_click
    ? { source: "one_click", proof: "POST List-Unsubscribe=One-Click", ip }
    : { source: "page", proof: "button of the unsubscribe page", ip }
  await store.tx((tx) => unsubscribe(tx, secrets, link, link.scope, way))
  return is_one_click ? new Response("", { headers: EMPTY_PAGE }) : done(look, link, visit.token)
}

const EMPTY_PAGE = { "content-type": "text/html;charset=utf-8", ...UNKEPT }

/** All kinds of mail that the address knows, each with its choice. Looking changes nothing. */
export async function showPreferences({ store }: UnsubscribePageParts, visit: LinkVisit) {
  const link = await lookupLink(store.read, visit.token)
  if (!link) return invalidLink(visit.request)
  return choices(lookOfLink(visit.request, link), link, await subscriptionsOf(store.read, link))
}

/**
 * Takes the choices of the form. Only kinds of mail that the person saw are changed, and only by what
 * unsubscribing itself made: a bounced address stays suppressed.
 */
export async function answerPreferences(
  { store, secrets }: UnsubscribePageParts,
  visit: LinkVisit,
  form: FormFields,
): Promise<Response> {
  const link = await lookupLink(store.read, visit.token)
  if (!link) return invalidLink(visit.request)
  const way: UnsubscribeWay = { source: "page", proof: "form of the preference page", ip: visit.ip }
  await store.tx(async (tx) => {
    for (const { scope, is_subscribed } of await subscriptionsOf(tx, link)) {
      if (form[`seen ${nameOf(scope)}`] === undefined) continue
      const is_wanted = form.action !== "none" && form[`get ${nameOf(scope)}`] !== undefined
      if (is_wanted === is_subscribed) continue
      await (is_wanted ? resubscribe : unsubscribe)(tx, secrets, link, scope, way)
    }
  })
  const look = lookOfLink(visit.request, link)
  const notice = form.action === undefined ? undefined : look.words.saved
  return choices(look, link, await subscriptionsOf(store.read, link), notice)
}

async function isSubscribed(store: Store, link: FoundLink): Promise<boolean> {
  const all = await subscriptionsOf(store.read, link)
  return all.find(({ scope }) => nameOf(scope) === nameOf(link.scope))?.is_subscribed ?? true
}

const lookOfLink = (request: Request, { settings }: FoundLink): PageLook =>
  lookOf(request, withDefaults(settings).branding)

function question(look: PageLook, { scope, address }: FoundLink, status = 200): Response {
  const { words, language } = look
  const content = html`
<p>${words.question(kindOf(scope, words), shown(address))}</p>
<form method="post" action="?lang=${language}">
<button class="go" name="action" value="unsubscribe">${words.unsubscribe}</button>
</form>`
  return recipientPage(look, { title: words.unsubscribe, content, status })
}

function done(look: PageLook, { scope, address }: FoundLink, token: string): Response {
  const { words, language } = look
  const content = html`
<p>${words.done(kindOf(scope, words), shown(address))}</p>
<p><a href="/p/${token}?lang=${language}">${words.to_preferences}</a></p>`
  return recipientPage(look, { title: words.done_title, content })
}

function choices(look: PageLook, { address }: FoundLink, all: Subscription[], notice?: string) {
  const { words, language } = look
  const content = html`
${notice && html`<p class="notice" role="status">${notice}</p>`}
<p>${words.choose(shown(address))}</p>
<form method="post" action="?lang=${language}">
<fieldset>
<legend>${words.kinds}</legend>
${all.map((one) => choice(one, words))}
</fieldset>
<button class="go" name="action" value="save">${words.save}</button>
<button name="action" value="none">${words.none}</button>
</form>`
  return recipientPage(look, { title: words.preferences, content })
}

function choice({ scope, is_subscribed }: Subscription, words: UnsubscribeWords): Markup {
  const name = nameOf(scope)
  return html`<input type="hidden" name="seen ${name}" value="1">
<label class="choice"><input type="checkbox" name="get ${name}" value="1"${is_subscribed && CHECKED}> ${kindOf(scope, words)}</label>
`
}

const CHECKED = new Markup(" checked")

const kindOf = ({ key }: UnsubscribeScope, words: UnsubscribeWords): Markup =>
  html`<bdi>${key ?? words.broadcast}</bdi>`

/** The address, hidden in part: a mail may have been passed on, and its link with it. */
function shown(address: string): Markup {
  const at = address.lastIndexOf("@")
  const [first = ""] = address
  return html`<bdi dir="ltr">${at > 1 ? first : ""}•••${address.slice(at)}</bdi>`
}

function invalidLink(request: Request): Response {
  const look = lookOf(request, null)
  const { invalid_title: title, invalid } = look.words
  return recipientPage(look, { title, content: html`<p>${invalid}</p>`, status: 404 })
}

/** What is shown where a request was refused before the page could be made. */
export function refusedVisit({ message, status }: ApiError): Response {
  const look = lookOf(new Request("http://page.test/"), null)
  const content = html`<p>${message}</p>`
  return recipientPage(look, { title: "That did not work", content, status })
}
