/** What isn't a fault of the program is said in one line. */
export class CannotStart extends Error {
  override name = 'CannotStart'
}
