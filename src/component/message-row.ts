import type { InboxAction, InboxMessage } from "./inbox-message"
import type { InboxWords } from "./inbox-words"
import { iconButton, make, makeButton, unseen } from "./make-element"
import { now } from "./now"
import { safeLink } from "./safe-link"
import { momentText, timeAgo } from "./time-words"

/** What a row needs of the panel around it. */
export interface RowParts {
  words: InboxWords
  /** The language of times. */
  tag: string
  categoryName(slug: string): string
  /** False where a listener prevented that the browser follows the link. */
  open(message: InboxMessage): boolean
  act(message: InboxMessage, action: InboxAction): void
  showMenu(message: InboxMessage, at: HTMLElement): void
}

/**
 * What the row shows of a message: while this is equal, the row stays as it is. To be seen changes nothing, and a row
 * that was made anew below the pointer would lose the click.
 */
export function rowFace(message: InboxMessage): string {
  const { seq, seen_at, updated_at, data, ...shown } = message
  return JSON.stringify({ ...shown, read_at: message.read_at !== null })
}

/** One message of the list. `data-at` names each part that can have the focus. */
export function messageRow(message: InboxMessage, parts: RowParts): HTMLLIElement {
  const face = safeLink(message.icon) ? " faced" : ""
  const row = make("li", { class: `row${message.read_at ? "" : " unread"}${face}` })
  const open: OnOpen = (event) => {
    row.classList.add("whole")
    if (!parts.open(message)) event.preventDefault()
  }
  const more = iconButton(
    "more",
    parts.words.more(message.title),
    () => parts.showMenu(message, more),
    { "aria-haspopup": "menu", "data-at": "more" },
  )
  row.append(opener(message, parts, open), more)
  const buttons = actions(message, parts, open)
  if (buttons) row.append(buttons)
  return row
}

/** The main part of a row: a link where the message leads somewhere, so that the browser follows it. */
function opener(message: InboxMessage, { words, tag, categoryName }: RowParts, open: OnOpen) {
  const { title, body, priority, category, snoozed_until } = message
  const at = Date.parse(message.created_at)
  const facts = make(
    "span",
    { class: "facts" },
    priority === "high" || priority === "urgent"
      ? make("span", { class: `mark ${priority}` }, words.priorities[priority])
      : undefined,
    make(
      "time",
      { datetime: message.created_at, title: momentText(at, tag) },
      timeAgo(at, now(), tag),
    ),
    category !== null && make("bdi", {}, categoryName(category)),
    snoozed_until !== null &&
      make("span", {}, words.asleep(momentText(Date.parse(snoozed_until), tag))),
  )
  const text = make(
    "span",
    { class: "text" },
    make("span", { class: "title" }, make("bdi", {}, title)),
    Boolean(body) && make("span", { class: "words" }, make("bdi", {}, body ?? "")),
    picture(message.image_url, "picture"),
    facts,
  )
  const children = [
    make("span", { class: "dot" }, message.read_at === null && unseen(words.is_unread)),
    picture(message.icon, "face"),
    text,
  ]
  const attributes = { class: "open", "data-at": "open" }
  return linkOrButton(message.action_url, attributes, open, children)
}

type OnOpen = (event: Event) => void

function linkOrButton(
  url: string | null,
  attributes: Record<string, string>,
  act: OnOpen,
  children: (Node | string | undefined)[],
): HTMLElement {
  const href = safeLink(url)
  if (href === undefined) return makeButton(attributes, act, ...children)
  const link = make("a", { ...attributes, href, rel: "noopener" }, ...children)
  link.addEventListener("click", act)
  return link
}

/** Nothing for an address that is none, and nothing is left of a picture that does not load. */
function picture(address: string | null, className: string): HTMLImageElement | undefined {
  const src = safeLink(address)
  if (src === undefined) return undefined
  const lazy = { loading: "lazy", decoding: "async", referrerpolicy: "no-referrer" }
  const image = make("img", { class: className, alt: "", ...lazy })
  image.addEventListener("error", () => image.remove())
  image.src = src
  return image
}

function actions(message: InboxMessage, parts: RowParts, open: OnOpen): HTMLElement | undefined {
  const { action_url, action_label } = message
  const all = message.actions.map((action) => oneAction(message, action, parts))
  if (action_label && safeLink(action_url))
    all.unshift(
      linkOrButton(action_url, { class: "act primary", "data-at": "label" }, open, [action_label]),
    )
  return all.length > 0 ? make("div", { class: "actions" }, ...all) : undefined
}

function oneAction(message: InboxMessage, action: InboxAction, { words, act }: RowParts) {
  const { key, label, style, url, completed_at } = action
  const at = { "data-at": `action ${key}` }
  if (completed_at !== null)
    return make("span", { class: "act is-done" }, `✓ ${label}`, unseen(`: ${words.done}`))
  const look = style === "primary" || style === "danger" ? ` ${style}` : ""
  const onClick = () => act(message, action)
  return linkOrButton(url, { class: `act${look}`, ...at }, onClick, [label])
}
