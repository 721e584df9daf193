// Real clients against the service: `node clients.mjs apollo http://127.0.0.1:8000/graphql <token> <folder>` prints what
// one saw. The folder has the guide's snippets as they are printed (see snippets() in tests/engine/test_clients.py).
// Each posts three comments, pages through them, hears of another one, deletes one, is refused and gets an error.
// Apollo and urql ask by hash first, as persisted queries do; Relay sends what its compiler made (see relay/). `codegen`,
// `trusted-apollo` and `trusted-urql` send the hashes of what codegen.mjs made.
import { createHash } from "node:crypto";
import { createClient } from "graphql-ws";

const [, , name, url, token, folder] = process.argv;
const { unwrap } = await import(`${folder}/refusals.ts`);
const headers = { authorization: `Bearer ${token}` };
const sockets = createClient({ url: url.replace("http", "ws"), connectionParams: { headers } });

const PAGE = `query Page($product: ID!, $after: String) {
  comments(product: $product, first: 2, after: $after) {
    edges { cursor node { id body } }
    pageInfo { hasNextPage endCursor }
  }
}`;
const POST = `mutation Post($input: PostCommentInput!) {
  postComment(input: $input) { ... on CommentPosted { comment { id body } } ... on Refused { code message } }
}`;
const DELETE = `mutation Delete($input: DeleteCommentInput!) {
  deleteComment(input: $input) { __typename ... on CommentDeleted { deletedId } ... on Refused { code message } }
}`;
const HEAR = "subscription Hear($product: ID!) { commentPosted(product: $product) { id body } }";
const INVALID = "{ viewer { nothing } }";

/** A function from a text to what codegen.mjs made of it. */
async function madeByCodegen() {
  const documents = await import(`${folder}/src/gql/graphql.ts`);
  return (text) => documents[`${/(?:query|mutation|subscription) (\w+)/.exec(text)[1]}Document`];
}

async function visit({ mutate, subscribe, readPages, readFirstPage, errorCode }) {
  const post = (body) => mutate(POST, { input: { product: name, language: "en", rating: 5, body } });
  for (const body of ["one", "two", "three"]) await post(body);
  const paged = await readPages();
  const heard = new Promise((resolve) => subscribe(HEAR, { product: name }, (data) => resolve(data.commentPosted.body)));
  const posting = setInterval(() => post("heard").catch(() => {}), 200); // until the subscription has begun
  await heard;
  clearInterval(posting);
  const remove = async (comment) => unwrap((await mutate(DELETE, { input: { comment } })).deleteComment);
  const { deletedId } = await remove(paged[0].id);
  const left = await readFirstPage(deletedId);
  return {
    paged: paged.map(({ body }) => body),
    heard: await heard,
    deleted: deletedId === paged[0].id && left.every(({ id }) => id !== deletedId),
    refused: await remove("x").catch(({ code }) => code),
    error: await errorCode(INVALID),
  };
}

async function apollo(document, hashing) {
  const { ApolloClient, ApolloLink, HttpLink, gql } = await import("@apollo/client");
  const { PersistedQueryLink } = await import("@apollo/client/link/persisted-queries");
  const { GraphQLWsLink } = await import("@apollo/client/link/subscriptions");
  const { cache, forget } = await import(`${folder}/apollo.ts`);
  const sha256 = (text) => createHash("sha256").update(text).digest("hex");
  const http = new HttpLink({ uri: url, headers });
  const isHeard = ({ operationType }) => operationType === "subscription";
  const links = [new GraphQLWsLink(sockets), hashing ? http : new PersistedQueryLink({ sha256 }).concat(http)];
  const split = ApolloLink.split(isHeard, ...links);
  const client = new ApolloClient({ cache, link: hashing ? hashing.concat(split) : split });
  const read = document ?? gql;
  const asked = { query: read(PAGE), variables: { product: name } };
  const cached = () => client.readQuery(asked).comments.edges.map(({ node }) => node);
  return visit({
    mutate: async (text, variables) => (await client.mutate({ mutation: read(text), variables })).data,
    subscribe: (text, variables, next) =>
      client.subscribe({ query: read(text), variables }).subscribe(({ data }) => next(data)),
    readPages: async () => {
      const watched = client.watchQuery(asked);
      watched.subscribe(() => {});
      let { pageInfo } = (await client.query(asked)).data.comments;
      while (pageInfo.hasNextPage) {
        const more = await watched.fetchMore({ variables: { after: pageInfo.endCursor } });
        pageInfo = more.data.comments.pageInfo;
      }
      return cached();
    },
    readFirstPage: async (deletedId) => {
      forget(deletedId);
      return cached();
    },
    errorCode: (text) => {
      const wrong = document ? { ...asked, variables: { product: name, after: "x" } } : { query: gql(text) };
      return client.query({ ...wrong, fetchPolicy: "network-only" }).catch(({ errors }) => errors[0].extensions.code);
    },
  });
}

async function urql(document, hashing) {
  const { Client, fetchExchange, gql, subscriptionExchange } = await import("@urql/core");
  const { cache } = await import(`${folder}/urql.ts`);
  const { persistedExchange } = await import("@urql/exchange-persisted");
  const client = new Client({
    url,
    preferGetMethod: false,
    fetchOptions: { headers },
    exchanges: [
      cache,
      hashing ?? persistedExchange({ enableForMutation: true }),
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query = "", variables, extensions }) => ({
          subscribe: (sink) => ({ unsubscribe: sockets.subscribe({ query, variables, extensions }, sink) }),
        }),
      }),
    ],
  });
  const made = document ?? gql;
  const answered = ({ data, error }) => {
    if (error) throw error;
    return data;
  };
  const read = async (after) => answered(await client.query(made(PAGE), { product: name, after })).comments;
  const nodes = ({ edges }) => edges.map(({ node }) => node);
  return visit({
    mutate: async (text, variables) => answered(await client.mutation(made(text), variables)),
    subscribe: (text, variables, next) =>
      client.subscription(made(text), variables).subscribe((result) => next(answered(result))),
    readPages: async () => {
      let comments = await read(null);
      while (comments.pageInfo.hasNextPage) comments = await read(comments.pageInfo.endCursor);
      return nodes(comments);
    },
    readFirstPage: async () => nodes(await read(null)),
    errorCode: async (text) => {
      const asked = document ? client.query(made(PAGE), { product: name, after: "x" }) : client.query(gql(text), {});
      return (await asked).error.graphQLErrors[0].extensions.code;
    },
  });
}

async function relay() {
  const runtime = (await import("relay-runtime")).default;
  const { Environment, Network, Observable, RecordSource, Store } = runtime;
  const artifacts = {};
  for (const kind of ["PageQuery", "PostMutation", "DeleteMutation", "HearSubscription"]) {
    artifacts[kind] = (await import(`./relay/__generated__/operations${kind}.graphql.js`)).default;
  }
  const { PageQuery, PostMutation, DeleteMutation, HearSubscription } = artifacts;
  const ask = async (query, variables) => {
    const body = JSON.stringify({ query, variables });
    return (await fetch(url, { method: "POST", body, headers: { ...headers, "content-type": "application/json" } })).json();
  };
  const environment = new Environment({
    network: Network.create(
      ({ text }, variables) => ask(text, variables),
      ({ text }, variables) => Observable.create((sink) => sockets.subscribe({ query: text, variables }, sink)),
    ),
    store: new Store(new RecordSource()),
  });
  const firstPage = runtime.createOperationDescriptor(PageQuery, { product: name });
  environment.retain(firstPage);
  const cached = () =>
    environment.lookup(firstPage.fragment).data.comments.edges.flatMap(({ node }) => (node ? [node] : []));
  const commit = (mutation, variables) =>
    new Promise((resolve, reject) => {
      const onCompleted = (data, errors) => (errors ? reject(errors) : resolve(data));
      runtime.commitMutation(environment, { mutation, variables, onCompleted, onError: reject });
    });
  return visit({
    mutate: (text, variables) => commit(text === POST ? PostMutation : DeleteMutation, variables),
    subscribe: (_, variables, onNext) =>
      runtime.requestSubscription(environment, { subscription: HearSubscription, variables, onNext }),
    readPages: async () => {
      let after;
      do {
        const { comments } = await runtime.fetchQuery(environment, PageQuery, { product: name, after }).toPromise();
        after = comments.pageInfo.hasNextPage && comments.pageInfo.endCursor;
      } while (after);
      return cached();
    },
    readFirstPage: async () => cached(),
    errorCode: async () => {
      const invalid = { ...PageQuery, params: { ...PageQuery.params, text: INVALID, cacheID: "invalid" } };
      const asked = runtime.fetchQuery(environment, invalid, { product: name }, { fetchPolicy: "network-only" });
      return asked.toPromise().catch(({ source }) => source.errors[0].extensions.code);
    },
  });
}

/** Sends the hashes of the documents that the client preset made, to a service that runs no others. */
async function codegen() {
  const made = await madeByCodegen();
  const documentId = (text) => made(text).__meta__.hash;
  const send = async (body) => {
    const sent = { method: "POST", body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
    return (await fetch(url, sent)).json();
  };
  const ask = async (text, variables) => (await send({ documentId: documentId(text), variables })).data;
  const read = async (after) => (await ask(PAGE, { product: name, after })).comments;
  const nodes = ({ edges }) => edges.map(({ node }) => node);
  return visit({
    mutate: ask,
    subscribe: (text, variables, next) =>
      sockets.subscribe(
        { query: "", documentId: documentId(text), variables }, // graphql-ws sends nothing without a query
        { next: ({ data }) => next(data), error: console.error, complete() {} },
      ),
    readPages: async () => {
      let page = await read(null);
      const all = nodes(page);
      while (page.pageInfo.hasNextPage) all.push(...nodes((page = await read(page.pageInfo.endCursor))));
      return all;
    },
    readFirstPage: async () => nodes(await read(null)),
    errorCode: async (query) => (await send({ query })).errors[0].extensions.code,
  });
}

/** A client that sends hashes alone, as the guide's snippet for it says. */
const trusting = (client) => async () =>
  client(await madeByCodegen(), (await import(`${folder}/${name}.ts`)).trusted);

const clients = { apollo, urql, relay, codegen, "trusted-apollo": trusting(apollo), "trusted-urql": trusting(urql) };
console.log(JSON.stringify(await clients[name]()));
process.exit(0);
