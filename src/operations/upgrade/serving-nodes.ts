import { connect } from "../../store/postgres-pool"

/** Longer than a node may be silent before its work is released. */
const ALIVE = "20 seconds"

/** How many nodes serve the database, this machine's own one included. */
export async function servingNodes(url: string): Promise<number> {
  const pool = connect(url, { max: 1, prepare: false })
  try {
    const since = `(extract(epoch FROM clock_timestamp() - interval '${ALIVE}') * 1000)::bigint`
    const [row] = await pool.unsafe(`SELECT count(*)::int AS n FROM nodes WHERE seen_at > ${since}`)
    return Number(row?.n ?? 0)
  } finally {
    await pool.close()
  }
}
