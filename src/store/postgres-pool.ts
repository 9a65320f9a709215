import { SQL } from "bun"

const CONNECT_SECONDS = 5

/** A pool that connects with its first query. Throws nothing yet. */
export const connect = (url: string, options: { max: number; prepare?: boolean }): SQL =>
  new SQL(url, { connectionTimeout: CONNECT_SECONDS, ...options })
