/** Play Games: tokens for codes of a game's server, and the player of a token. It judges each request. */
export function playGames({
  client_id,
  client_secret,
}: Record<"client_id" | "client_secret", string>) {
  const codes = new Map<string, string>()
  const tokens = new Map<string, string>()
  const state = { asked: 0, is_away: false, keeps_codes: false }

  async function token(request: Request): Promise<Response> {
    const form = Object.fromEntries(new URLSearchParams(await request.text()))
    const { code = "", ...rest } = form
    const right = { client_id, client_secret, grant_type: "authorization_code", redirect_uri: "" }
    const player = codes.get(code)
    if (!Bun.deepEquals(rest, right)) return refused("invalid_client", 401)
    if (player === undefined) return refused("invalid_grant", 400)
    if (!state.keeps_codes) codes.delete(code)
    const access_token = `ya29.${tokens.size}`
    tokens.set(access_token, player)
    return Response.json({ access_token, expires_in: 3599, token_type: "Bearer" })
  }

  function player(request: Request): Response {
    const bearer = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? ""
    const playerId = tokens.get(bearer)
    if (playerId === undefined) return refused("UNAUTHENTICATED", 401)
    return Response.json({ kind: "games#player", playerId, displayName: "somebody" })
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      state.asked += 1
      if (state.is_away) return new Response("away", { status: 503 })
      const { pathname } = new URL(request.url)
      const place = `${request.method} ${pathname}`
      if (place === "POST /token") return token(request)
      if (place === "GET /games/v1/players/me") return player(request)
      return refused("not_found", 404)
    },
  })

  return {
    state,
    url: `http://127.0.0.1:${server.port}`,
    /** A code by which the game's server may ask for this player. */
    codeFor(player_id: string): string {
      const code = `4/0A${codes.size}-${crypto.randomUUID()}`
      codes.set(code, player_id)
      return code
    },
    stop: () => server.stop(true),
  }
}

const refused = (error: string, status: number) => Response.json({ error }, { status })
