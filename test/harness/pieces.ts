/** The bytes, cut at these places. */
export async function* inPieces(bytes: Uint8Array, cuts: number[]): AsyncGenerator<Uint8Array> {
  const places = [0, ...cuts.filter((cut) => cut < bytes.length), bytes.length].sort(
    (a, b) => a - b,
  )
  for (let at = 1; at < places.length; at++) yield bytes.subarray(places[at - 1], places[at])
}
