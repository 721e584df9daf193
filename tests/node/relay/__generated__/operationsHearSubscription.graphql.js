/**
 * @generated SignedSource<<5a0ca0bfc172d09d2f98950b782d3c3e>>
 * @lightSyntaxTransform
 */

/* eslint-disable */

'use strict';

var node = (function(){
var v0 = [
  {
    "defaultValue": null,
    "kind": "LocalArgument",
    "name": "product"
  }
],
v1 = [
  {
    "alias": null,
    "args": [
      {
        "kind": "Variable",
        "name": "product",
        "variableName": "product"
      }
    ],
    "concreteType": "Comment",
    "kind": "LinkedField",
    "name": "commentPosted",
    "plural": false,
    "selections": [
      {
        "alias": null,
        "args": null,
        "kind": "ScalarField",
        "name": "id",
        "storageKey": null
      },
      {
        "alias": null,
        "args": null,
        "kind": "ScalarField",
        "name": "body",
        "storageKey": null
      }
    ],
    "storageKey": null
  }
];
return {
  "fragment": {
    "argumentDefinitions": (v0/*:: as any*/),
    "kind": "Fragment",
    "metadata": null,
    "name": "operationsHearSubscription",
    "selections": (v1/*:: as any*/),
    "type": "Subscription",
    "abstractKey": null
  },
  "kind": "Request",
  "operation": {
    "argumentDefinitions": (v0/*:: as any*/),
    "kind": "Operation",
    "name": "operationsHearSubscription",
    "selections": (v1/*:: as any*/)
  },
  "params": {
    "cacheID": "b66e51136e401def26245d68c7e76725",
    "id": null,
    "metadata": {},
    "name": "operationsHearSubscription",
    "operationKind": "subscription",
    "text": "subscription operationsHearSubscription(\n  $product: ID!\n) {\n  commentPosted(product: $product) {\n    id\n    body\n  }\n}\n"
  }
};
})();

node.hash = "8814d66565fc8cbca7ad5edb4b8a6ce8";

export default node;
