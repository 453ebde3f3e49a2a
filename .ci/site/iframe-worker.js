// Lets pages that are opened as files be searched: browsers give those no worker, so a frame that
// nobody sees runs the script in its place. Material loads one from the net unless it finds this.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      const answer = data => {
        const event = new MessageEvent("message", { data });
        this.onmessage?.(event);
        this.dispatchEvent(event);
      };
      inner.IFrameWorker = IFrameWorker;
      inner.postMessage = data => setTimeout(() => answer(data));
      inner.importScripts = (...scripts) =>
        scripts.reduce((before, each) => before.then(() => load(inner, each)), Promise.resolve());
      load(inner, String(url)).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach(data => this.send(data));
      });
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.send(data);
    }

    send(data) {
      const inner = this.frame.contentWindow;
      setTimeout(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  const load = (inner, url) =>
    new Promise((done, failed) => {
      const script = inner.document.createElement("script");
      script.src = new URL(url, document.baseURI);
      script.onload = done;
      script.onerror = failed;
      inner.document.body.append(script);
    });

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
