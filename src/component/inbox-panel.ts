import type { InboxClient } from "./inbox-client"
import type { InboxView } from "./inbox-message"
import type { InboxWords } from "./inbox-words"
import { iconButton, make, makeButton, setAll } from "./make-element"
import { indexIn, MessageMenu, moveFocus } from "./message-menu"
import { MessageRows } from "./message-rows"
import { preferencesView } from "./preferences-view"

/** A tab of the panel: the messages of one category. */
export interface InboxTab {
  category: string
  label?: string
}

export interface PanelParts {
  root: ShadowRoot
  client: InboxClient
  words: InboxWords
  tag: string
  tabs: readonly InboxTab[]
  /** Over the page, and opened by the bell; otherwise a part of the page. */
  is_popover: boolean
  /** For screen readers. */
  say(text: string): void
}

const FILTERS = ["all", "unread", "archived", "snoozed"] as const
const MINUTE_MS = 60_000
const HORIZONTAL = { ltr: ["ArrowLeft", "ArrowRight"], rtl: ["ArrowRight", "ArrowLeft"] } as const

/** The list of messages and all around it. `update` shows what the client holds by then. */
export class InboxPanel {
  readonly element: HTMLElement
  readonly #parts: PanelParts
  readonly #title = make("h2", { id: "title" })
  readonly #filter: HTMLSelectElement
  readonly #tools: Record<"back" | "read_all" | "settings", HTMLButtonElement>
  readonly #tabs: HTMLElement
  readonly #note = make("p", { class: "note", role: "status" })
  readonly #body = make("div", { class: "body", id: "body", tabindex: "-1" })
  readonly #quiet = make("p", { class: "quiet" })
  readonly #list: MessageRows
  readonly #more: HTMLButtonElement
  readonly #menu: MessageMenu
  #view: InboxView = { filter: "all" }
  #is_loading = true
  #has_failed = false
  #in_settings = false
  /** So many unseen messages the server was asked to mark last, and has not marked. */
  #asked_seen = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(parts: PanelParts) {
    this.#parts = parts
    const { words, client, root } = parts
    const attempt = (change: Promise<unknown>) => this.attempt(change)
    const focusButton = (id: string) => this.#list.focusMore(id)
    this.#menu = new MessageMenu({ root, words, client, attempt, focusButton })
    this.#list = new MessageRows({
      ...{ words, tag: parts.tag, categoryName: (slug) => this.#categoryName(slug) },
      open: ({ id }) => client.open(id),
      act: ({ id }, { key }) => this.attempt(client.act(id, key)),
      showMenu: (message, at) => this.#menu.show(message, at),
    })
    this.#filter = this.#makeFilter()
    this.#tools = this.#makeTools()
    this.#tabs = this.#makeTabs()
    this.#more = makeButton(
      { class: "act wide" },
      () => this.attempt(client.more()),
      words.load_more,
    )
    this.#body.append(this.#quiet, this.#list.element, this.#more)
    this.element = this.#whole()
    this.#keepTimes()
  }

  get #is_reached(): boolean {
    return !["offline", "ended"].includes(this.#parts.client.state)
  }

  /** The list loads until the promise has ended. */
  load(loading: Promise<unknown>): void {
    this.#is_loading = true
    this.attempt(
      loading.finally(() => {
        this.#is_loading = false
      }),
    )
  }

  /** What fails is said above the list, until something works. */
  attempt(change: Promise<unknown>): void {
    const end = (has_failed: boolean) => {
      this.#has_failed = has_failed
      this.update()
    }
    change.then(
      () => end(false),
      () => end(true),
    )
  }

  /** Puts the focus to the messages. */
  enter(): void {
    if (this.#in_settings || !this.#list.focusFirst()) this.#body.focus()
    this.#asked_seen = 0
    this.#see()
  }

  update(): void {
    const { words, client } = this.#parts
    const { messages, counts } = client
    const { category, filter = "all" } = this.#view
    this.#title.textContent = this.#in_settings ? words.settings : words.title
    for (const part of [this.#filter, this.#tools.read_all, this.#tools.settings])
      part.hidden = this.#in_settings
    this.#tools.back.hidden = !this.#in_settings
    const unread = category === undefined ? counts.unread : counts.by_category[category]
    if (!unread) this.#leave(this.#tools.read_all)
    this.#tools.read_all.disabled = !unread
    this.#updateTabs()
    this.#updateNote()
    this.#list.update(messages)
    this.#quiet.hidden = messages.length > 0
    this.#quiet.textContent = this.#is_reached ? words.empty[filter] : ""
    if (this.#is_loading) this.#quiet.textContent = words.loading
    if (!client.hasMore) this.#leave(this.#more)
    this.#more.hidden = !client.hasMore
    this.#see()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #whole(): HTMLElement {
    const { words, is_popover } = this.#parts
    const { back, read_all, settings } = this.#tools
    const close = () => this.element.hidePopover()
    const panel = make(
      "div",
      {
        ...{ class: "panel", part: "panel", "aria-labelledby": "title" },
        ...(is_popover ? { popover: "auto", role: "dialog" } : { role: "region" }),
      },
      make(
        "div",
        { class: "head" },
        ...[back, this.#title, this.#filter, make("span", { class: "space" })],
        ...[read_all, settings, is_popover && iconButton("close", words.close, close)],
      ),
      ...[this.#tabs, this.#note, this.#body, this.#menu.element],
    )
    this.#body.addEventListener("keydown", (event) => {
      if (!this.#in_settings) this.#list.press(event)
    })
    this.#body.addEventListener("scroll", () => this.#menu.hide())
    return panel
  }

  #makeFilter(): HTMLSelectElement {
    const { words } = this.#parts
    const options = FILTERS.map((value) => make("option", { value }, words.filters[value]))
    const select = make("select", { "aria-label": words.show }, ...options)
    select.addEventListener("change", () => {
      const filter = FILTERS.find((one) => one === select.value) ?? "all"
      this.#show({ ...this.#view, filter })
    })
    return select
  }

  #makeTools() {
    const { words, client } = this.#parts
    const readAll = () => {
      const { category } = this.#view
      this.attempt(client.mark("*", "read", category === undefined ? undefined : { category }))
    }
    return {
      back: iconButton("back", words.back, () => this.#showSettings(false)),
      read_all: iconButton("checks", words.read_all, readAll),
      settings: iconButton("choices", words.settings, () => this.#showSettings(true)),
    }
  }

  #makeTabs(): HTMLElement {
    const { words, tabs } = this.#parts
    const all = tabs.map(({ category }) => this.#tab(category, this.#categoryName(category)))
    if (all.length > 0) all.unshift(this.#tab(undefined, words.all))
    const list = make("div", { class: "tabs", role: "tablist", "aria-label": words.kinds }, ...all)
    list.addEventListener("keydown", (event) => {
      const from = indexIn(all, this.#parts.root)
      const direction = getComputedStyle(list).direction === "rtl" ? "rtl" : "ltr"
      moveFocus(event, all, from, HORIZONTAL[direction])
    })
    return list
  }

  #tab(category: string | undefined, name: string): HTMLButtonElement {
    const choose = () => {
      const { filter = "all" } = this.#view
      this.#show({ filter, ...(category !== undefined && { category }) })
    }
    const attributes = { class: "tab", role: "tab", "aria-controls": "body", "data-tab": category }
    const count = make("span", { class: "count" })
    return makeButton(attributes, choose, make("bdi", {}, name), " ", count)
  }

  #updateTabs(): void {
    const { by_category } = this.#parts.client.counts
    const tabs = [...this.#tabs.querySelectorAll<HTMLElement>("[role=tab]")]
    this.#tabs.hidden = this.#in_settings || tabs.length === 0
    setAll(this.#body, { role: tabs.length > 0 && "tabpanel" })
    for (const tab of tabs) {
      const { tab: category } = tab.dataset
      const is_chosen = category === this.#view.category
      setAll(tab, { "aria-selected": String(is_chosen), tabindex: is_chosen ? "0" : "-1" })
      const unread = category === undefined ? 0 : (by_category[category] ?? 0)
      const count = tab.querySelector<HTMLElement>(".count")
      if (!count) continue
      count.hidden = unread === 0
      count.textContent = countText(unread)
    }
  }

  #updateNote(): void {
    const { words, client } = this.#parts
    const of_state = { ended: words.ended, offline: words.offline, polling: words.polling }
    const { state } = client
    const text = state in of_state ? of_state[state as keyof typeof of_state] : undefined
    const is_bad = this.#has_failed || state === "ended"
    this.#note.className = is_bad ? "note bad" : "note"
    this.#note.textContent = text ?? (this.#has_failed ? words.failed : "")
    this.#note.hidden = this.#note.textContent === ""
  }

  #show(view: InboxView): void {
    this.#view = view
    this.load(this.#parts.client.show(view))
    this.update()
  }

  #showSettings(is_on: boolean): void {
    this.#in_settings = is_on
    const { client, words, say } = this.#parts
    const attempt = (change: Promise<unknown>) => this.attempt(change)
    const categoryName = (slug: string) => this.#categoryName(slug)
    this.#body.replaceChildren(
      ...(is_on
        ? [preferencesView({ client, words, say, attempt, categoryName })]
        : [this.#quiet, this.#list.element, this.#more]),
    )
    this.update()
    this.#tools[is_on ? "back" : "settings"].focus()
  }

  /** A button that cannot be pressed any longer leaves the focus to the messages. */
  #leave(button: HTMLElement): void {
    if (this.#parts.root.activeElement === button) this.#body.focus()
  }

  /** The label of its tab, or the slug as words. */
  #categoryName(slug: string): string {
    const label = this.#parts.tabs.find(({ category }) => category === slug)?.label
    const words = slug.replaceAll(/[-_]+/g, " ")
    return label ?? words.charAt(0).toUpperCase() + words.slice(1)
  }

  /** What is shown is seen. A refusal is not repeated until there is more to see, or the network is back. */
  #see(): void {
    const { client } = this.#parts
    const { unseen } = client.counts
    if (!this.#is_reached) this.#asked_seen = 0
    const is_shown = this.element.checkVisibility() && document.visibilityState === "visible"
    if (!is_shown || !this.#is_reached || unseen <= this.#asked_seen) return
    this.#asked_seen = unseen
    client.mark("*", "seen").then(
      () => {
        this.#asked_seen = 0
        this.#see()
      },
      () => {},
    )
  }

  #keepTimes(): void {
    this.#timer = setTimeout(() => {
      this.#list.tellTimes()
      this.#keepTimes()
    }, MINUTE_MS)
  }
}

/** A number that leaves the place of two digits. */
export const countText = (count: number): string => (count > 99 ? "99+" : String(count))
