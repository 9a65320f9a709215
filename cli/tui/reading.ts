import { exits, Failure } from "../lib/errors"

export const PAGE = { per_page: 100 }

/** Undefined for what the key may not read. */
export async function readable<Answer>(
  answer: Promise<Answer>,
  isRefusal = ({ exit }: Failure) => exit === exits.unauthorized,
): Promise<Answer | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Failure && isRefusal(error)) return undefined
    throw error
  }
}
