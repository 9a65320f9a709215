import type { SubscriptionKind } from "../consents/linked-subscribers"
import {
  nameOf,
  type Subscription,
  type Subscriptions,
  subscriptionsOf,
} from "../consents/subscription-kinds"
import { chooseAll, type UnsubscribeWay, unsubscribe } from "../consents/unsubscribe"
import { type FoundLink, lookupLink } from "../consents/unsubscribe-links"
import type { Secrets } from "../core/secrets"
import { withDefaults } from "../identity/caller"
import { maskedEmail } from "../lib/masked"
import type { Store } from "../store/store"
import { html, Markup, unkept } from "./html"
import {
  type FormFields,
  type LinkVisit,
  lookOf,
  notValid,
  type PageLook,
  recipientPage,
} from "./recipient-page"
import type { UnsubscribeWords } from "./unsubscribe-words"

export interface UnsubscribePageParts {
  store: Store
  secrets: Secrets
}

/** A link that is valid, and how its pages look for the visitor. */
interface OpenedLink {
  link: FoundLink
  look: PageLook
}

/** Shows what is behind a link, or that it is not valid. */
async function behindLink(
  { store }: UnsubscribePageParts,
  { request, token }: LinkVisit,
  show: (opened: OpenedLink) => Promise<Response>,
): Promise<Response> {
  const link = await lookupLink(store.read, token)
  if (link) return show({ link, look: lookOf(request, withDefaults(link.settings).branding) })
  return notValid(request)
}

/** Looking changes nothing: scanners of mail follow links. */
export const showUnsubscribe = (parts: UnsubscribePageParts, visit: LinkVisit) =>
  behindLink(parts, visit, async ({ link, look }) => {
    const subscription = await subscriptionOf(parts.store, link)
    return subscription.is_subscribed
      ? question(look, link, subscription)
      : done(look, link, subscription, visit.token)
  })

/**
 * Ends the mail that the link is about: for a mail program, which posts `List-Unsubscribe=One-Click`
 * and gets no page (RFC 8058, 3.2), or for the button of the page. Any other form changes nothing.
 */
export const answerUnsubscribe = (
  parts: UnsubscribePageParts,
  visit: LinkVisit,
  form: FormFields,
): Promise<Response> =>
  behindLink(parts, visit, async ({ link, look }) => {
    const { store, secrets } = parts
    const is_one_click = isOneClick(form)
    if (!is_one_click && form.action !== "unsubscribe") {
      return question(look, link, await subscriptionOf(store, link), 422)
    }
    const { ip } = visit
    const way: UnsubscribeWay = is_one_click
      ? { source: "one_click", proof: "POST List-Unsubscribe=One-Click", ip }
      : { source: "page", proof: "button of the unsubscribe page", ip }
    await store.tx((tx) => unsubscribe(tx, secrets, link, link.scope, way))
    if (is_one_click) return new Response("", { headers: unkept })
    return done(look, link, await subscriptionOf(store, link), visit.token)
  })

/** Mail programs write it in any case, with an end of line behind it, or with its sign of equality encoded. */
const isOneClick = (form: FormFields): boolean =>
  Object.entries(form).some(([name, value = ""]) =>
    /^list-unsubscribe=one-click=?$/i.test(`${name.trim()}=${value.trim()}`),
  )

/** All kinds of mail that the address knows, each with its choice. Looking changes nothing. */
export const showPreferences = (parts: UnsubscribePageParts, visit: LinkVisit) =>
  behindLink(parts, visit, async ({ link, look }) =>
    choicesPage(look, link, await subscriptionsOf(parts.store.read, link)),
  )

/**
 * Takes the choices of the form. Only kinds of mail that the person saw are changed, and only by what
 * unsubscribing itself made: a bounced address stays suppressed.
 */
export const answerPreferences = (
  parts: UnsubscribePageParts,
  visit: LinkVisit,
  form: FormFields,
): Promise<Response> =>
  behindLink(parts, visit, async ({ link, look }) => {
    const { store, secrets } = parts
    const way: UnsubscribeWay = {
      source: "page",
      proof: "form of the preference page",
      ip: visit.ip,
    }
    const was = (verb: "seen" | "get", name: string) => form[`${verb} ${name}`] !== undefined
    const isWanted = (name: string) => form.action !== "none" && was("get", name)
    const all = await subscriptionsOf(store.read, link)
    const channels = all
      .filter(({ channel, is_wanted }) => was("seen", channel) && is_wanted === !isWanted(channel))
      .map(({ channel, is_wanted }) => ({ channel, kind: null, is_wanted: !is_wanted }))
    const seen = all.flatMap(({ kinds }) => kinds).filter((kind) => was("seen", fieldOf(kind)))
    const changed = seen.filter((kind) => isWanted(fieldOf(kind)) !== kind.is_subscribed)
    const kinds = changed.map((kind) => {
      return { channel: kind.channel, kind, is_wanted: !kind.is_subscribed }
    })
    await chooseAll(store, secrets, link, [...channels, ...kinds], way)
    const notice = form.action === undefined ? undefined : look.words.saved
    return choicesPage(look, link, await subscriptionsOf(store.read, link), notice)
  })

/** The name of the field of a kind. The field of a whole channel is called as the channel, which has no colon. */
const fieldOf = ({ channel, scope }: SubscriptionKind): string =>
  channel === "email" ? nameOf(scope) : `${channel} ${nameOf(scope)}`

async function subscriptionOf(store: Store, link: FoundLink): Promise<Subscription> {
  const [email] = await subscriptionsOf(store.read, link)
  const known = email.kinds.find(({ scope }) => nameOf(scope) === nameOf(link.scope))
  const { scope } = link
  const bare = { channel: "email" as const, scope, name: null, category: null, topic: null }
  return known ?? { ...bare, is_subscribed: true }
}

function question(
  look: PageLook,
  { address }: FoundLink,
  kind: SubscriptionKind,
  status = 200,
): Response {
  const { words, language } = look
  const content = html`
<p>${words.question(nameFor(kind, words), toResponse(address))}</p>
<form method="post" action="?lang=${language}">
<button class="go" name="action" value="unsubscribe">${words.unsubscribe}</button>
</form>`
  return recipientPage(look, { title: words.unsubscribe, content, status })
}

function done(
  look: PageLook,
  { address }: FoundLink,
  kind: SubscriptionKind,
  token: string,
): Response {
  const { words, language } = look
  const content = html`
<p>${words.done(nameFor(kind, words), toResponse(address))}</p>
<p><a href="/p/${token}?lang=${language}">${words.to_preferences}</a></p>`
  return recipientPage(look, { title: words.done_title, content })
}

function choicesPage(
  look: PageLook,
  { address }: FoundLink,
  all: Subscriptions[],
  notice?: string,
): Response {
  const { words, language } = look
  const has_others = all.length > 1
  const content = html`
${notice && html`<p class="notice" role="status">${notice}</p>`}
<p>${(has_others ? words.choose_messages : words.choose)(toResponse(address))}</p>
<form method="post" action="?lang=${language}">
${all.map((one) => channelChoices(one, words))}
<button class="go" name="action" value="save">${words.save}</button>
<button name="action" value="none">${words.none}</button>
</form>`
  const title = has_others ? words.message_preferences : words.preferences
  return recipientPage(look, { title, content })
}

function channelChoices({ channel, kinds, is_wanted }: Subscriptions, words: UnsubscribeWords) {
  const { all, kinds: legend } = words.channels[channel]
  return html`${is_wanted !== null && choice(channel, all, is_wanted)}
${
  (kinds.length > 0 || channel === "email") &&
  html`<fieldset>
<legend>${legend}</legend>
${kinds.map((one) => choice(fieldOf(one), nameFor(one, words), one.is_subscribed))}
</fieldset>`
}
`
}

const choice = (name: string, label: Markup | string, is_subscribed: boolean): Markup =>
  html`<input type="hidden" name="seen ${name}" value="1">
<label class="choice"><input type="checkbox" name="get ${name}" value="1"${is_subscribed && CHECKED}> ${label}</label>
`

const CHECKED = new Markup(" checked")

const nameFor = ({ scope, name }: SubscriptionKind, words: UnsubscribeWords): Markup =>
  html`<bdi>${name ?? scope.key ?? words.broadcast}</bdi>`

/** The address, hidden in part: a mail may have been passed on, and its link with it. */
const toResponse = (address: string): Markup => html`<bdi dir="ltr">${maskedEmail(address)}</bdi>`
