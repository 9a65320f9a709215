/** What a key does on the page of the mailbox; the names are those of the monitor. */
export type MailboxAction =
  | "down"
  | "up"
  | "page_down"
  | "page_up"
  | "first"
  | "last"
  | "open"
  | "back"
  | "next"
  | "previous"
  | "next_tab"
  | "previous_tab"
  | "filter"
  | "pause"
  | "follow"
  | "resend"
  | "copy"
  | "compose"
  | "delete"
  | "unread"
  | "help"

export interface MailboxKey {
  keys: readonly string[]
  action: MailboxAction
  text: string
  /** `list`: while the list has the focus, or no mail is open; `mail`: while one is open. */
  place: "list" | "mail" | "both"
}

const row = (
  keys: string,
  action: MailboxAction,
  place: MailboxKey["place"],
  text: string,
): MailboxKey => ({ keys: keys.split(" "), action, place, text })

/** As in `belfry tui`, so that both are learned once. */
export const MAILBOX_KEYS: readonly MailboxKey[] = [
  row("ArrowDown j", "down", "list", "move down by a mail"),
  row("ArrowUp k", "up", "list", "move up by a mail"),
  row("PageDown", "page_down", "list", "move down by a page"),
  row("PageUp", "page_up", "list", "move up by a page"),
  row("g Home", "first", "list", "go to the newest mail"),
  row("G End", "last", "list", "go to the oldest mail"),
  row("Enter", "open", "list", "open the mail"),
  row("Escape", "back", "both", "go back to the list, or remove the filter"),
  row("n", "next", "mail", "open the next mail"),
  row("p", "previous", "mail", "open the previous mail"),
  row("ArrowRight", "next_tab", "mail", "open the next tab"),
  row("ArrowLeft", "previous_tab", "mail", "open the previous tab"),
  row("/", "filter", "both", "search: words, to:ann@x.test from:b@y.test since:2h"),
  row("Space", "pause", "both", "pause the list, or continue it"),
  row("f", "follow", "both", "follow the newest mail, or stop following"),
  row("r", "resend", "both", "send this mail again (asks first)"),
  row("y", "copy", "both", "copy the id of the mail"),
  row("u", "unread", "both", "mark the mail as unread"),
  row("D", "delete", "both", "delete the mail (asks first)"),
  row("c", "compose", "both", "write a mail"),
  row("?", "help", "both", "show the keys"),
]

/** The action of a key, or undefined where the key has none at this place. */
export function actionOf(key: string, place: "list" | "mail"): MailboxAction | undefined {
  const name = key === " " ? "Space" : key
  const found = MAILBOX_KEYS.find(
    (one) => one.keys.includes(name) && (one.place === "both" || one.place === place),
  )
  return found?.action
}

const SIGNS: Record<string, string> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowRight: "→",
  ArrowLeft: "←",
  Escape: "Esc",
  Enter: "⏎",
}

/** The key as people know it. */
export const signOf = (key: string): string => SIGNS[key] ?? key
