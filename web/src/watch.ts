/** Pages of a server load again when the file changes that they show. */

const INTERVAL = 1500; // milliseconds

export function watch(): void {
  let known: string | null = null;
  const ask = async (): Promise<void> => {
    const address = new URL(location.href);
    address.searchParams.set("stamp", "");
    address.hash = "";
    try {
      const answer = await fetch(address, { cache: "no-store" });
      const stamp = answer.ok ? await answer.text() : known;
      if (known !== null && stamp !== known) location.reload();
      known = stamp;
    } catch {
      // the server was stopped; it may come back
    }
    setTimeout(() => void ask(), INTERVAL);
  };
  void ask();
}
