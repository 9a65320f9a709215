import { type OperationName, paramsOf } from "../../src/client/client"
import type { Client } from "../lib/client"
import { exits, Failure } from "../lib/errors"
import type { ServerRun } from "../local/held"
import { dropCommand } from "./box-screen"
import { screenOfList } from "./lists"
import { newestMessages, olderMessages, type Walks } from "./older-messages"
import { PAGE } from "./reading"
import { SCREENS } from "./screens"
import { type Intent, type Load, listsOf, type Opening, type RecordSource, whether } from "./state"
import type { News } from "./store"

interface ActionParts {
  client: Client
  dispatch(news: News): void
  copy(text: string): void
  /** Draws the whole screen again: another program may have written to the terminal. */
  redraw(): void
  quit(): void
}

/**
 * Carries out the intents of keys and news. A load that is asked for again while it runs is done
 * once more afterwards, however often it was asked for. What fails is said, and nothing ends.
 */
export function openActions(world: ActionParts): (intent: Intent) => void {
  const walks: Walks = new Map()
  const running = new Map<string, boolean>()

  const run = async (name: string, intent: Intent) => {
    running.set(name, false)
    await perform(world, walks, intent).catch((error) => {
      if (!(error instanceof Failure)) throw error
      world.dispatch(problemOf(intent, error))
    })
    const again = running.get(name)
    running.delete(name)
    if (again) await run(name, intent)
  }
  return (intent) => {
    if (intent.do === "quit") return world.quit()
    if (intent.do === "redraw") return world.redraw()
    if (intent.do === "copy") return copied(world, intent.text)
    const name = JSON.stringify(intent)
    if (running.has(name)) running.set(name, isLoad(intent))
    else void run(name, intent)
  }
}

const isLoad = (intent: Intent): intent is Load => intent.do.startsWith("load_")

function copied({ copy, dispatch }: ActionParts, text: string, what_for = ""): void {
  copy(text)
  const words = ["copied", ...(what_for === "" ? [] : [`${what_for}:`]), text]
  dispatch({ is: "notice", text: words.join(" ") })
}

async function perform(world: ActionParts, walks: Walks, intent: Intent): Promise<void> {
  const { client, dispatch } = world
  if (isLoad(intent)) return dispatch(await newsOf(client, walks, intent))
  switch (intent.do) {
    case "ask_drop":
      return await askDrop(world, intent.server)
    case "change": {
      const answer = await client.send(intent.name, intent.input)
      return dispatch({ is: "notice", text: intent.done(answer) })
    }
    case "drop_held": {
      const { dropHeldHere, told } = await import("../local/held")
      const text = `dropped: ${told(await dropHeldHere(intent.server))}`
      return dispatch({ is: "notice", text })
    }
  }
}

/** On the machine of the server it asks first. Elsewhere it copies the command, which asks by itself. */
async function askDrop(world: ActionParts, server: ServerRun): Promise<void> {
  const { countHeldHere, told } = await import("../local/held")
  const counts = await countHeldHere(server)
  if (!counts) return copied(world, dropCommand(server), "for the machine of the server")
  const text = `Drop ${told(counts)}? This cannot be undone.`
  const question = whether(text, { do: "drop_held", server })
  world.dispatch({ is: "asked", screen: "box", question })
}

async function newsOf(client: Client, walks: Walks, load: Load): Promise<News> {
  switch (load.do) {
    case "load_older":
      return {
        is: "older",
        ...(await olderMessages(client, walks, load.filter)),
        filter: load.filter.text,
      }
    case "load_newest":
      return { is: "facts", facts: await newestMessages(client, load.filter) }
    case "load_list": {
      const { do: _, list, of = "" } = load
      const { route, query } = SCREENS[screenOfList(list)].lists?.[list] ?? {}
      const answer =
        typeof route === "function"
          ? await route(client, of)
          : route && (await answerOf(client, route, [of], query?.(of) ?? PAGE))
      const more = answer?.meta.has_more === true
      return { is: "rows", list, of, rows: answer?.data ?? [], more } as News
    }
    case "load_page": {
      const { screen } = load
      const found = await foundBy(client, SCREENS[screen].page?.read)
      return { is: "page", screen, found } as News
    }
    case "load_detail": {
      const { screen, id, tab } = load
      const found = await foundBy(client, SCREENS[screen].detail?.read, load)
      return { is: "detail", screen, id, tab, found } as News
    }
  }
}

async function foundBy(client: Client, read: RecordSource | undefined, opened?: Opening) {
  if (typeof read !== "string") return await read?.(client, opened as Opening)
  const names = [opened?.of ?? [], opened?.id ?? []].flat()
  return (await answerOf(client, read, names)).data
}

/** What a route answers; `names` are the parameters of its path, in their order. */
async function answerOf(client: Client, route: OperationName, names: string[], query = {}) {
  const params = Object.fromEntries(paramsOf(route).map((name, at) => [name, names[at] ?? ""]))
  const answer = await client.send(route, { params, query })
  return answer as { data: object; meta: { has_more?: boolean } }
}

/** What is said where the answer would have stood. */
function problemOf(intent: Intent, { exit, message, details }: Failure): News {
  const scope = exit === exits.unauthorized && details.required_scope
  const text = scope ? `this needs a key with the scope ${scope}` : message
  if (intent.do === "load_detail") {
    const { screen, id, tab } = intent
    return { is: "detail", screen, id, tab, found: null, problem: text }
  }
  const screen = screenRead(intent)
  if (screen) {
    const is_older = exit === exits.not_found
    return {
      is: "problem",
      screen,
      problem: is_older ? "this server does not have this screen" : text,
    }
  }
  return scope === "webhooks:write" ? { is: "read_only", why: text } : { is: "notice", text }
}

/** The screen that shows nothing else than what was to be read. */
function screenRead(intent: Intent) {
  if (intent.do === "load_page") return intent.screen
  if (intent.do !== "load_list") return undefined
  const screen = screenOfList(intent.list)
  return listsOf[screen][0] === intent.list ? screen : undefined
}
