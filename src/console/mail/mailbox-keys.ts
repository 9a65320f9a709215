/** As in `belfry tui`, so that both are learned once. `list`: while the list has the focus, or no mail is open. */
const ROWS = [
  ["ArrowDown j", "down", "list", "move down by a mail"],
  ["ArrowUp k", "up", "list", "move up by a mail"],
  ["PageDown", "page_down", "list", "move down by a page"],
  ["PageUp", "page_up", "list", "move up by a page"],
  ["g Home", "first", "list", "go to the newest mail"],
  ["G End", "last", "list", "go to the oldest mail"],
  ["Enter", "open", "list", "open the mail"],
  ["Escape", "back", "both", "go back to the list, or remove the filter"],
  ["n", "next", "mail", "open the next mail"],
  ["p", "previous", "mail", "open the previous mail"],
  ["ArrowRight", "next_tab", "mail", "open the next tab"],
  ["ArrowLeft", "previous_tab", "mail", "open the previous tab"],
  ["/", "filter", "both", "search: words, to:ann@x.test from:b@y.test since:2h"],
  ["Space", "pause", "both", "pause the list, or continue it"],
  ["f", "follow", "both", "follow the newest mail, or stop following"],
  ["r", "resend", "both", "send this mail again (asks first)"],
  ["y", "copy", "both", "copy the id of the mail"],
  ["u", "unread", "both", "mark the mail as unread"],
  ["D", "delete", "both", "delete the mail (asks first)"],
  ["c", "compose", "both", "write a mail"],
  ["?", "help", "both", "show the keys"],
] as const

/** What a key does on the page of the mailbox; the names are those of the monitor. */
export type MailboxAction = (typeof ROWS)[number][1]

export const MAILBOX_KEYS = ROWS.map(([keys, action, place, text]) => {
  return { keys: keys.split(" "), action, place, text }
})

/** The action of a key, or undefined where the key has none at this place. */
export function actionOf(key: string, place: "list" | "mail"): MailboxAction | undefined {
  const name = key === " " ? "Space" : key
  return MAILBOX_KEYS.find(
    (row) => row.keys.includes(name) && (row.place === "both" || row.place === place),
  )?.action
}
