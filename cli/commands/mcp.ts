import { apiReference } from "../lib/api-reference"
import type { Client } from "../lib/client"
import type { Action } from "../lib/context"
import { Failure, usage } from "../lib/errors"
import { serveMcp } from "../lib/mcp-server"
import { toolsFor } from "../lib/mcp-tools"
import { ALL, listUpTo } from "../lib/paging"
import { own } from "../lib/resource"
import { LONGEST } from "./ai"

/** Serves until stdin ends. Only messages of the protocol reach stdout. */
const serve: Action<{ write?: boolean }> = async (context, options) => {
  const { api_key, signed_in } = context.connection()
  if (api_key === null || signed_in) {
    const hint =
      "give a key with --api-key or BELFRY_API_KEY; its scopes decide which tools there are"
    throw usage("mcp works with an API key, not with a sign-in", hint)
  }
  const client = context.client(context.timeout ?? LONGEST)
  const scopes = await scopesOf(client, api_key)
  const may_write = options.write === true && context.flags.dryRun !== true
  const tools = toolsFor(await apiReference(client), scopes, may_write)
  await serveMcp(client, tools)
  return undefined
}

/** What a key may do: the list of keys says it, or the answer that refuses the list. */
async function scopesOf(client: Client, api_key: string): Promise<string[]> {
  try {
    const { rows } = await listUpTo(client, "GET /v1/api-keys", ALL)
    return rows.find(({ prefix }) => api_key.startsWith(prefix))?.scopes ?? []
  } catch (error) {
    const granted = error instanceof Failure && error.details.granted_scopes
    if (Array.isArray(granted)) return granted
    throw error
  }
}

export const mcpRow = own("mcp", serve, {
  about: "serve the API to a language model, as tools of the Model Context Protocol (stdio)",
  example: ["", "--write"],
  options: [["--write", "also offer tools that send, change and delete"]],
  end: "The scopes of the API key decide which tools there are. Without --write they only read.",
})
