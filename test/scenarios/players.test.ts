import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { BUNDLE, gameCenter } from "../fakes/game-center"
import { initialise, lastingHome, startServe } from "./serve"

const MANY = 50

type Box = Awaited<ReturnType<typeof startServe>>

/** Sets up the game as its developer does; answers its public key. */
async function gameAt(box: Box): Promise<string> {
  const write = async (method: string, path: string, fields: object) => {
    const response = await box.request(path, { method, body: JSON.stringify(fields) })
    expect(response.ok).toBe(true)
    return (await response.json()) as { data: { id: string; public_keys: { live: string } } }
  }
  const all = "/v1/auth/applications"
  const { data } = await write("POST", all, { name: "Game", type: "game" })
  const platform = { enabled: true, bundle_ids: [BUNDLE], team_id: "DEF123GHIJ" }
  await write("PUT", `${all}/${data.id}/gaming-providers/game-center`, platform)
  return data.public_keys.live
}

/** Sends the assertion many times at once, each time from another address, and counts the answers. */
async function manyTimes(box: Box, key: string, assertion: object) {
  const answers = await Promise.all(
    Array.from({ length: MANY }, async (_, at) => {
      const body = JSON.stringify(assertion)
      const from = { "x-application-key": key, "x-forwarded-for": `198.51.100.${at}` }
      const headers = { "content-type": "application/json", ...from }
      const response = await fetch(`${box.url}/v1/auth/game-center`, {
        method: "POST",
        headers,
        body,
      })
      const { error } = (await response.json()) as { error?: { code: string } }
      return error?.code ?? `${response.status}`
    }),
  )
  const counted = Map.groupBy(answers, (answer) => answer)
  return Object.fromEntries([...counted].map(([answer, all]) => [answer, all.length]))
}

test(`the binary lets an assertion in once: neither ${MANY} at once nor a restart repeat it`, async () => {
  const platform = gameCenter()
  using place = lastingHome()
  const env = {
    BELFRY_AUTH_GAME_CENTER_HOSTS: platform.settings["auth.game_center.hosts"].join(","),
    BELFRY_AUTH_GAME_CENTER_ROOT: platform.settings["auth.game_center.root"],
    BELFRY_HTTP_TRUSTED_PROXIES: "127.0.0.1",
  }
  const { home } = place
  const api_key = await initialise(home, env)
  const start = () => startServe({ home, api_key, env })
  const assertion = platform.assertion(`T:_${newId().replaceAll("-", "")}`)
  try {
    let key = ""
    {
      await using box = await start()
      key = await gameAt(box)
      const first = await manyTimes(box, key, assertion)
      expect(first).toEqual({ 201: 1, invalid_assertion: MANY - 1 })
    }
    await using again = await start()
    expect(await manyTimes(again, key, assertion)).toEqual({ invalid_assertion: MANY })
    const other = platform.assertion(assertion.player_id)
    expect(await manyTimes(again, key, other)).toEqual({ 200: 1, invalid_assertion: MANY - 1 })
  } finally {
    await platform.stop()
  }
})
