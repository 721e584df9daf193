// Relay's operations. The files in __generated__ are what its compiler made of them. After a change, run here:
// npx --yes relay-compiler@21 relay.config.json
import { graphql } from "relay-runtime";

graphql`
  query operationsPageQuery($product: ID!, $after: String) {
    comments(product: $product, first: 2, after: $after) @connection(key: "operations_comments", filters: ["product"]) {
      edges {
        node {
          id
          body
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`;
graphql`
  mutation operationsPostMutation($input: PostCommentInput!) {
    postComment(input: $input) {
      ... on CommentPosted {
        comment {
          id
          body
        }
      }
      ... on Refused {
        code
      }
    }
  }
`;
graphql`
  mutation operationsDeleteMutation($input: DeleteCommentInput!) {
    deleteComment(input: $input) {
      __typename
      ... on CommentDeleted {
        deletedId @deleteRecord
      }
      ... on Refused {
        code
        message
      }
    }
  }
`;
graphql`
  subscription operationsHearSubscription($product: ID!) {
    commentPosted(product: $product) {
      id
      body
    }
  }
`;
