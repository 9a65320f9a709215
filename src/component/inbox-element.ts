import { InboxClient } from "./inbox-client"
import { countText, InboxPanel, type InboxTab } from "./inbox-panel"
import { INBOX_STYLE } from "./inbox-style"
import { wordsFor } from "./inbox-words"
import { make, makeButton, makeIcon, setAll } from "./make-element"
import { placer } from "./top-layer"

type Token = ConstructorParameters<typeof InboxClient>[0]["token"]

/** What the client tells, and pages hear as `belfry-…`. */
const TOLD = ["message", "opened", "action", "problem", "change"] as const

const WIDE = "(min-width:480px)"

const style = new CSSStyleSheet()
style.replaceSync(INBOX_STYLE)

/**
 * `<belfry-inbox>`: a bell that opens the inbox, or with `layout="panel"` the inbox itself. Attributes: `token`,
 * `url`, `locale`, `theme`, `dir`, `layout`, `tabs` (slugs of categories). The property `token` takes a function too,
 * and `tabs` a list with labels.
 */
export class BelfryInbox extends HTMLElement {
  static readonly observedAttributes = ["token", "url", "locale", "dir", "layout", "tabs"]

  readonly #root = this.attachShadow({ mode: "open" })
  readonly #live = make("div", { class: "unseen", role: "status" })
  #token: Token | undefined
  #tabs: readonly InboxTab[] | string | undefined
  #client: InboxClient | undefined
  #stop = () => {}
  /** Of what the window is asked while the panel is open. */
  #open = new AbortController()
  #is_planned = false

  constructor() {
    super()
    // A page may have set them before this script came: its own properties would hide the setters.
    for (const name of ["token", "tabs"] as const) {
      const early = Object.getOwnPropertyDescriptor(this, name)
      if (!early) continue
      Reflect.deleteProperty(this, name)
      this[name] = early.value
    }
  }

  get token(): Token | undefined {
    return this.#token ?? this.getAttribute("token") ?? undefined
  }

  /** A function is asked again when the server wants a newer token. */
  set token(token: Token | undefined) {
    this.#token = token
    this.#plan()
  }

  get tabs(): readonly InboxTab[] {
    const tabs = this.#tabs ?? this.getAttribute("tabs") ?? ""
    if (typeof tabs !== "string") return tabs
    const named = tabs.split(",").map((slug) => ({ category: slug.trim() }))
    return named.filter(({ category }) => category !== "")
  }

  /** Frameworks give to a property what stands in their markup: the text of the attribute holds here, too. */
  set tabs(tabs: readonly InboxTab[] | string | undefined) {
    this.#tabs = tabs
    this.#plan()
  }

  /** The inbox without a look, while there is a token. */
  get client(): InboxClient | undefined {
    return this.#client
  }

  connectedCallback(): void {
    this.#plan()
  }

  disconnectedCallback(): void {
    this.#stop()
  }

  attributeChangedCallback(_: string, before: string | null, after: string | null): void {
    if (before !== after) this.#plan()
  }

  /** Begins anew once, however many attributes a page sets in a row. */
  #plan(): void {
    if (this.#is_planned) return
    this.#is_planned = true
    queueMicrotask(() => {
      this.#is_planned = false
      if (this.isConnected) this.#begin()
    })
  }

  #begin(): void {
    this.#stop()
    this.#root.adoptedStyleSheets = [style]
    this.#root.replaceChildren()
    const { token } = this
    if (token === undefined) return
    const url = this.getAttribute("url")
    const client = new InboxClient({ token, ...(url && { url }) })
    this.#client = client
    const panel = this.#draw(client)
    panel.load(client.start())
    this.#stop = () => {
      this.#client = undefined
      this.#stop = () => {}
      this.#open.abort()
      panel.stop()
      client.stop()
    }
  }

  #draw(client: InboxClient): InboxPanel {
    const languages = [this.getAttribute("locale"), document.documentElement.lang]
    const { words, tag } = wordsFor([...languages, ...navigator.languages])
    const is_popover = this.getAttribute("layout") !== "panel"
    const say = (text: string) => {
      this.#live.textContent = text
    }
    const parts = { root: this.#root, client, words, tag, tabs: this.tabs, is_popover, say }
    const panel = new InboxPanel(parts)
    const badge = make("span", { class: "badge", part: "badge", "aria-hidden": "true" })
    const bell = makeButton({ class: "bell", part: "bell" }, () => {}, makeIcon("bell"), badge)
    if (is_popover) this.#join(bell, panel)
    const update = () => {
      const { unread } = client.counts
      badge.hidden = unread === 0
      badge.textContent = countText(unread)
      bell.setAttribute("aria-label", words.bell(String(unread)))
      panel.update()
    }
    for (const name of TOLD) client.addEventListener(name, (event) => this.#tell(name, event))
    client.addEventListener("change", update)
    client.addEventListener("message", (event) => {
      if (event instanceof CustomEvent) say(words.news(event.detail.message.title))
    })
    // The direction of the page holds, unless the words need the other one.
    const dir = this.dir || (words.direction === "rtl" && "rtl")
    const root = make("div", { class: "root", lang: tag }, is_popover && bell)
    setAll(root, { dir })
    root.append(panel.element, this.#live)
    this.#root.append(root)
    update()
    return panel
  }

  /** The bell opens and closes the panel, as the browser does it: Escape and a press elsewhere close it, too. */
  #join(bell: HTMLButtonElement, panel: InboxPanel): void {
    bell.popoverTargetElement = panel.element
    setAll(bell, { "aria-haspopup": "dialog", "aria-expanded": "false" })
    const place = placer(this.#root, ".panel", WIDE)
    const move = () => place(panel.element, bell)
    // Before the first picture of it: the event of the end comes later.
    panel.element.addEventListener("beforetoggle", ({ newState }) => {
      requestAnimationFrame(move)
      if (newState === "closed" && panel.element.contains(this.#root.activeElement)) bell.focus()
    })
    panel.element.addEventListener("toggle", ({ newState }) => {
      const is_open = newState === "open"
      bell.setAttribute("aria-expanded", String(is_open))
      this.#open.abort()
      if (!is_open) return
      this.#open = new AbortController()
      const { signal } = this.#open
      addEventListener("resize", move, { signal })
      addEventListener("scroll", move, { signal, capture: true, passive: true })
      panel.enter()
    })
  }

  #tell(name: (typeof TOLD)[number], event: Event): void {
    const told = event instanceof CustomEvent ? event.detail : undefined
    const { counts, state } = this.#client ?? {}
    const detail = name === "change" ? { counts, state } : told
    const init = { detail, bubbles: true, composed: true, cancelable: event.cancelable }
    if (!this.dispatchEvent(new CustomEvent(`belfry-${name}`, init))) event.preventDefault()
  }
}

// Another copy of this script, from another address, may have been first.
if (!customElements.get("belfry-inbox")) customElements.define("belfry-inbox", BelfryInbox)
