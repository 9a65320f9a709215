import { SQL } from "bun"

const CONNECT_SECONDS = 5

/**
 * So many connections a pool of the store has, all of which it opens with its first query. Each is a process of
 * Postgres, so the tests have fewer.
 */
export const POOL = { connections: 16 }

/** A pool that connects with its first query. Throws nothing yet. */
export const connect = (url: string, options: { max: number; prepare?: boolean }): SQL =>
  new SQL(url, { connectionTimeout: CONNECT_SECONDS, ...options })

/** Acts on one connection, also through a pooler, and closes it. */
export async function onConnection<Result>(
  url: string,
  act: (pool: SQL) => Promise<Result>,
): Promise<Result> {
  const pool = connect(url, { max: 1, prepare: false })
  try {
    return await act(pool)
  } finally {
    await pool.close()
  }
}
