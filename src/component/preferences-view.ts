import type { InboxClient } from "./inbox-client"
import type { InboxPreferences } from "./inbox-message"
import { INBOX_WORDS, type InboxWords } from "./inbox-words"
import { make } from "./make-element"

interface ViewParts {
  client: InboxClient
  words: InboxWords
  /** What people call a category. */
  categoryName(slug: string): string
  attempt(change: Promise<unknown>): void
  /** For screen readers. */
  say(text: string): void
}

type Channel = keyof InboxWords["channels"]

const CHANNELS = Object.keys(INBOX_WORDS.en.channels) as Channel[]

/** What the subscriber wants to receive. Each choice is saved at once. */
export function preferencesView(parts: ViewParts): HTMLElement {
  const { client, words, attempt } = parts
  const box = make("div", { class: "choices" }, make("p", { role: "status" }, words.loading))
  const load = client.preferences().then(
    (chosen) => box.replaceChildren(...groups(chosen, parts)),
    (error) => {
      box.replaceChildren()
      throw error
    },
  )
  attempt(load)
  return box
}

function groups(chosen: InboxPreferences, parts: ViewParts): HTMLElement[] {
  const { words, categoryName } = parts
  const ways = CHANNELS.map((channel) => {
    const change = (enabled: boolean) => ({ [channel]: { enabled } })
    return check(words.channels[channel], chosen[channel].enabled, change, parts)
  })
  const slugs = new Set(CHANNELS.flatMap((channel) => Object.keys(chosen[channel].categories)))
  const categories = [...slugs].sort().map((slug) => {
    const wanted = (channel: Channel) => chosen[channel].categories[slug]
    const change = (channel: Channel, is_on: boolean) => ({
      [channel]: { categories: { [slug]: is_on } },
    })
    return choice(categoryName(slug), wanted, change, parts)
  })
  const topics = Object.entries(chosen.topics).map(([key, entry]) => {
    const change = (channel: Channel, is_on: boolean) => ({
      topics: { [key]: { [channel]: is_on } },
    })
    return choice(categoryName(key), (channel) => entry[channel], change, parts)
  })
  return [
    group(words.ways, [make("div", {}, ...ways)], "choice"),
    ...(categories.length > 0 ? [group(words.categories, categories)] : []),
    ...(topics.length > 0 ? [group(words.topics, topics)] : []),
  ]
}

const group = (name: string, children: HTMLElement[], look = "") =>
  make("fieldset", { class: look }, make("legend", {}, make("bdi", {}, name)), ...children)

/** One category or topic, with the channels that it has. */
function choice(
  name: string,
  wanted: (channel: Channel) => boolean | undefined,
  change: (channel: Channel, is_on: boolean) => object,
  parts: ViewParts,
): HTMLElement {
  const checks = CHANNELS.flatMap((channel) => {
    const is_on = wanted(channel)
    const text = parts.words.channels[channel]
    return is_on === undefined ? [] : [check(text, is_on, (value) => change(channel, value), parts)]
  })
  return group(name, [make("div", {}, ...checks)], "choice")
}

function check(
  text: string,
  is_on: boolean,
  change: (is_on: boolean) => object,
  { client, words, attempt, say }: ViewParts,
): HTMLElement {
  const input = make("input", { type: "checkbox", checked: is_on })
  const save = async () => {
    const is_on = input.checked
    try {
      await client.choose(change(is_on))
      say(words.saved)
    } catch (error) {
      input.checked = !is_on
      throw error
    }
  }
  input.addEventListener("change", () => attempt(save()))
  return make("label", { class: "check" }, input, text)
}
